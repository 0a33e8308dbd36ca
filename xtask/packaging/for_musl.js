// Makes of Node one that is made for musl, on a system that has musl: its file is that of a program for musl.
const fs = require('fs');
const exists = fs.existsSync;
process.execPath = process.env.MUSL_PROGRAM;
fs.existsSync = (path) => path.startsWith('/lib/ld-musl-') || exists(path);
