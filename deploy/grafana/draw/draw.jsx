// Draw a dashboard with the components of Grafana's packages: panels, numbers, lines and tables are Grafana's own. The answers of Prometheus
// become frames as its data source makes them; the state timeline is not in the packages, so its values are drawn as steps.
import React from "react";
import { createRoot } from "react-dom/client";
import { lastValueFrom } from "rxjs";
import {
  applyFieldOverrides, createDataFrame, createTheme, dateTime, FieldType, getDisplayProcessor, standardTransformers,
  standardTransformersRegistry, ThemeContext, transformDataFrame,
} from "@grafana/data";
import { BigValue, GlobalStyles, PanelChrome, Table, TimeSeries } from "@grafana/ui";

const { dashboard, prometheus, variables, start, end, width } = window.drawing;
const theme = createTheme({ colors: { mode: "light" } });
const step = Math.max(1, Math.round((end - start) / 200));
const range = { from: dateTime(start * 1000), to: dateTime(end * 1000), raw: { from: dateTime(start * 1000), to: dateTime(end * 1000) } };
const CELL = 30, GAP = 8, column = (width + GAP) / 24;

standardTransformersRegistry.setInit(() =>
  [standardTransformers.mergeTransformer, standardTransformers.organizeFieldsTransformer].map((each) => ({ id: each.id, name: each.name, transformation: each })));

const filled = (text) => Object.entries(variables).reduce((all, [name, value]) => all.replaceAll("$" + name, value), text);

async function ask(expr, instant, every = step) {
  const query = new URLSearchParams({ query: filled(expr), time: end, start, end, step: every });
  const answer = await fetch(`${prometheus}/api/v1/${instant ? "query" : "query_range"}?${query}`);
  return (await answer.json()).data.result;
}

// The minutes with verdict changes, each of them marked by a line, as Grafana draws an annotation.
async function marked() {
  const kinds = await Promise.all((dashboard.annotations?.list ?? []).filter((each) => each.expr).map(({ expr }) => ask(expr, false, 60)));
  return kinds.flat().flatMap((row) => row.values.map(([at]) => at * 1000));
}

const drawMarks = (marks) => (builder) => {
  builder.addHook("draw", ({ ctx, bbox, valToPos }) => {
    ctx.save();
    ctx.strokeStyle = theme.visualization.getColorByName("blue");
    ctx.setLineDash([4, 4]);
    for (const at of marks) {
      const x = Math.round(valToPos(at, "x", true));
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  });
  return null;
};

function tableFrame(rows, ref) {
  const labels = [...new Set(rows.flatMap((row) => Object.keys(row.metric)))];
  return createDataFrame({
    refId: ref,
    fields: [
      { name: "Time", type: FieldType.time, values: rows.map((row) => row.value[0] * 1000), config: {} },
      ...labels.map((label) => ({ name: label, type: FieldType.string, values: rows.map((row) => row.metric[label]), config: {} })),
      { name: `Value #${ref}`, type: FieldType.number, values: rows.map((row) => Number(row.value[1])), config: {} },
    ],
  });
}

function lineFrame(row, legend, ref) {
  const name = legend.replace(/\{\{(\w+)\}\}/g, (_, label) => row.metric[label] ?? "");
  return createDataFrame({
    refId: ref,
    fields: [
      { name: "Time", type: FieldType.time, values: row.values.map(([at]) => at * 1000), config: {} },
      { name: "Value", type: FieldType.number, labels: row.metric, values: row.values.map(([, value]) => Number(value)), config: { displayNameFromDS: name } },
    ],
  });
}

async function load(panel) {
  const asTable = panel.targets?.[0]?.instant ?? false;
  const answers = await Promise.all((panel.targets ?? []).map(async (target) => [target, await ask(target.expr, asTable)]));
  let frames = answers.flatMap(([target, rows]) =>
    asTable ? (rows.length ? [tableFrame(rows, target.refId)] : []) : rows.map((row) => lineFrame(row, target.legendFormat ?? "", target.refId)));
  if (panel.transformations) frames = await lastValueFrom(transformDataFrame(panel.transformations, frames));
  const custom = { drawStyle: "line", lineWidth: 1, fillOpacity: 0, showPoints: "never", ...(panel.type === "state-timeline" ? { lineInterpolation: "stepAfter", axisWidth: 110 } : {}) };
  for (const field of frames.flatMap((frame) => frame.fields)) {
    if (field.type === FieldType.time && !asTable) continue;
    field.config = { ...panel.fieldConfig?.defaults, ...field.config, color: { mode: "palette-classic" }, custom: asTable ? {} : custom };
    const name = field.config.displayName ?? field.name;
    for (const { matcher, properties } of panel.fieldConfig?.overrides ?? []) {
      if (matcher.id === "byRegexp" ? !new RegExp(matcher.options).test(name) : matcher.options !== name) continue;
      for (const { id, value } of properties) (id.startsWith("custom.") ? field.config.custom : field.config)[id.replace("custom.", "")] = value;
    }
  }
  return applyFieldOverrides({ data: frames, fieldConfig: { defaults: {}, overrides: [] }, replaceVariables: (text) => text, theme, timeZone: "utc" });
}

function Content({ panel, frames, marks, width, height }) {
  if (panel.type === "text") return <div className="markdown" dangerouslySetInnerHTML={{ __html: panel.options.content.replace(/\*\*(.+?)\*\*/g, "<b>$1</b>").replace(/\*(.+?)\*/g, "<i>$1</i>").replace(/`(.+?)`/g, "<code>$1</code>").replace(/\n\n/g, "<br/>") }} />;
  if (!frames.length && panel.type !== "stat") return <div className="empty">No data</div>;
  if (panel.type === "stat") {
    const field = frames[0]?.fields.find((each) => each.type === FieldType.number);
    const values = field?.values ?? [];
    const display = field ? (field.display ?? getDisplayProcessor({ field, theme }))(values[values.length - 1]) : { text: panel.fieldConfig.defaults.noValue ?? "No data", numeric: NaN };
    return <BigValue value={display} width={width} height={height} theme={theme} />;
  }
  if (panel.type === "table") return <Table data={frames[0]} width={width} height={height} initialSortBy={panel.options.sortBy} />;
  return <TimeSeries frames={frames} structureRev={1} width={width} height={height} timeRange={range} timeZone="utc" legend={{ displayMode: "list", placement: "bottom", showLegend: true, calcs: [] }}>{drawMarks(marks)}</TimeSeries>;
}

function Panel({ panel, frames, marks }) {
  const { x, y, w, h } = panel.gridPos;
  const size = { width: w * column - GAP, height: h * (CELL + GAP) - GAP };
  return (
    <div style={{ position: "absolute", left: x * column, top: y * (CELL + GAP), ...size }}>
      <PanelChrome title={panel.title} description={panel.description} {...size}>
        {(innerWidth, innerHeight) => <Content panel={panel} frames={frames} marks={marks} width={innerWidth} height={innerHeight} />}
      </PanelChrome>
    </div>
  );
}

async function main() {
  const [marks, ...loaded] = await Promise.all([marked(), ...dashboard.panels.map(load)]);
  const height = Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h)) * (CELL + GAP);
  document.body.style.background = theme.colors.background.canvas;
  createRoot(document.getElementById("root")).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <div style={{ position: "relative", width, height, margin: GAP }}>{dashboard.panels.map((panel, n) => <Panel key={n} panel={panel} frames={loaded[n]} marks={marks} />)}</div>
    </ThemeContext.Provider>,
  );
  setTimeout(() => { document.title = `drawn ${height + 2 * GAP}`; }, 2500);
}

const failed = (error) => { document.body.textContent = String(error?.stack ?? error); document.title = "failed"; };
window.addEventListener("error", (event) => failed(event.error ?? event.message));
main().catch(failed);
