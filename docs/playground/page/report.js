// The findings of hg.check, as they stand in CheckReport.to_dict().

import { make } from "./inputs.js";

const VERDICTS = {
  right: "Every gradient is right",
  wrong: "A gradient is wrong",
  undecided: "It could not be judged",
};

// goTo: called with the number of a line that a sentence names.
export function drawReport(report, goTo) {
  const against = report.like && report.like !== report.target ? `, read as ${report.like}` : "";
  return [
    make("p", { className: `verdict ${report.verdict}`, textContent: VERDICTS[report.verdict] + against }),
    ...report.faults.map((fault) => drawFault(fault, goTo)),
    ...report.remarks.map((each) => make("p", { className: "remark", textContent: each.message })),
    drawGradients(report.gradients),
    ...drawTrials(report.trials),
  ];
}

export function linesOf(report) {
  return report.faults.flatMap(({ message }) => [...message.matchAll(/\(line (\d+)/g)].map((m) => +m[1]));
}

function drawFault({ message, confidence, judged }, goTo) {
  const paragraph = make("p", { className: judged ? "fault" : "fault undecided" });
  for (const part of message.split(/(\(line \d+)/)) {
    const line = /^\(line (\d+)$/.exec(part);
    if (!line) paragraph.append(part);
    else paragraph.append("(", make("button", { className: "line", textContent: `line ${line[1]}`, onclick: () => goTo(+line[1]) }));
  }
  const sure = confidence ? `sure to ${Math.round(100 * confidence)} %` : "no cause found";
  if (judged) paragraph.append(" ", make("small", { textContent: sure }));
  return paragraph;
}

function drawGradients(rows) {
  if (!rows.length) return "";
  const head = ["gradient", "error", "bound", "verdict", "bound from"];
  const cells = (row) => [`d${row.gradient}`, short(row.error), short(row.bound), row.verdict, row.method];
  const table = make("table", { className: "gradients" }, make("tr", {}, ...head.map((textContent) => make("th", { textContent }))));
  for (const row of rows) {
    table.append(make("tr", { className: row.verdict }, ...cells(row).map((textContent) => make("td", { textContent }))));
  }
  return make("div", { className: "scroll" }, table);
}

function drawTrials(trials) {
  return ["wrong", "right", "undecided", "does not apply"].flatMap((verdict) => {
    const names = [...new Set(trials.filter((each) => each.verdict === verdict).map((each) => each.situation))];
    return names.length ? [make("p", { className: "trials", textContent: `${verdict}: ${names.join(", ")}` })] : [];
  });
}

function short(value) {
  return typeof value === "number" ? value.toExponential(1) : value;
}
