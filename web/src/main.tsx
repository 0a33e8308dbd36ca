import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { App } from "./app";
import { Model } from "./model";

const place = document.getElementById("page");
if (place) render(<App model={new Model()} />, place);
