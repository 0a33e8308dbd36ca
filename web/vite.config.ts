import { defineConfig } from "vite";

// The page is three files with fixed names, which `blacklight live` serves from its own memory.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../crates/cli/src/live/page",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "page.js",
        assetFileNames: "page[extname]",
        codeSplitting: false,
      },
    },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
