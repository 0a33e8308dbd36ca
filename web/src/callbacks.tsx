// Callbacks by what they cost.

import { Fragment } from "preact";
import { useState } from "preact/hooks";
import type { Cost, Histogram } from "./documents";
import { duration, number, percent } from "./format";
import { merged, since } from "./history";
import type { Model } from "./model";
import { Bar, Bars, Choice, Code, Section, SortHead, useSome } from "./parts";

type By = "name" | "kind" | "count" | "total" | "mean" | "longest";

interface Row {
  key: string;
  cost: Cost;
  count: number;
  total: number;
  longest: number | null;
  // How long the calls took that were seen one by one.
  seen: Histogram;
}

function rows(model: Model, isEver: boolean): Row[] {
  const found = new Map<string, Row>();
  for (const [pid, documents] of model.shown) {
    const old = isEver ? undefined : model.before?.processes.get(pid);
    for (const [id, cost] of documents.cost) {
      const [loop, address] = id.split("/");
      if (model.loop !== null && model.loop !== loop) continue;
      const past = old?.cost.get(id);
      const count = cost.count - (past?.count ?? 0);
      const total = cost.total - (past?.total ?? 0);
      if (count <= 0 && !isEver) continue;
      // The longest of a time is known if it is a new one; of others, the power of two below which it was.
      const isNew = isEver || !past || cost.longest > past.longest;
      const longest = isNew ? cost.longest : since(cost.seen, past.seen).max || null;
      const seen = since(cost.seen, past?.seen);
      const key = `${pid}/${address}`;
      const row = found.get(key);
      if (row) {
        row.count += count;
        row.total += total;
        row.longest = Math.max(row.longest ?? 0, longest ?? 0) || null;
        row.seen = merged(row.seen, seen);
      } else {
        found.set(key, { key, cost, count, total, longest, seen });
      }
    }
  }
  return [...found.values()];
}

const title = (cost: Cost) => cost.name || `${cost.kind} callbacks`;

export function Callbacks({ model }: { model: Model }) {
  const [sort, setSort] = useState<{ by: By; down: boolean }>({ by: "total", down: true });
  const [open, setOpen] = useState<string | null>(null);
  const [ever, setEver] = useState<"lately" | "ever">("lately");
  const value = (row: Row): number | string => {
    switch (sort.by) {
      case "name": return title(row.cost);
      case "kind": return row.cost.kind;
      case "mean": return row.total / Math.max(1, row.count);
      case "longest": return row.longest ?? 0;
      default: return row[sort.by];
    }
  };
  const time = ever === "ever" ? "since its loop was made" : model.range ? "in the range" : "in the last 10 s";
  const found = rows(model, ever === "ever").sort((a, b) => {
    const [one, other] = [value(a), value(b)];
    const order = typeof one === "string" ? one.localeCompare(String(other)) : one - Number(other);
    return sort.down ? -order : order;
  });
  const [some, left] = useSome(found, 24);
  const all = found.reduce((sum, row) => sum + row.total, 0);
  const head = (by: By, name: string, className?: string) => (
    <SortHead by={by} sort={sort} onSort={setSort} class={className}>{name}</SortHead>
  );
  return (
    <Section
      id="callbacks"
      title="Costliest callbacks"
      class="callbacks"
      tools={
        <Choice
          label="Which time"
          value={ever}
          options={[["lately", model.range ? "the range" : "last 10 s"], ["ever", "since it was made"]]}
          onChange={setEver}
        />
      }
    >
      <div class="scroll" tabIndex={0} role="region" aria-label="Callbacks, the costliest first">
        <table class="rows">
          <thead>
            <tr>
              {head("name", "callback")}
              {head("kind", "kind", "wide")}
              {head("count", "calls", "number")}
              {head("total", "total", "number")}
              <th scope="col" class="wide"><span class="hidden">share</span></th>
              {head("mean", "mean", "number wide")}
              {head("longest", "longest", "number")}
            </tr>
          </thead>
          <tbody>
            {some.map((row) => (
              <Fragment key={row.key}>
                <tr>
                  <th scope="row">
                    <button
                      type="button"
                      class="open"
                      aria-expanded={open === row.key}
                      onClick={() => setOpen(open === row.key ? null : row.key)}
                    >
                      <Code name={title(row.cost)} place={row.cost.place} />
                      {!row.cost.name && <span class="place">not told apart by their code</span>}
                    </button>
                  </th>
                  <td class="wide">{row.cost.kind}</td>
                  <td class="number">{number(row.count)}</td>
                  <td class="number">{duration(row.total)}</td>
                  <td class="wide bar"><Bar share={percent(row.total, all) / 100} /></td>
                  <td class="number wide">{duration(row.total / Math.max(1, row.count))}</td>
                  <td class="number">{row.longest === null ? "–" : duration(row.longest)}</td>
                </tr>
                {open === row.key && (
                  <tr class="more">
                    <td colSpan={7}><Bars histogram={row.seen} name={title(row.cost)} time={time} /></td>
                  </tr>
                )}
              </Fragment>
            ))}
          </tbody>
        </table>
        {left}
        {!found.length && <p class="empty">No callback ran {ever === "ever" ? "yet" : "in this time"}.</p>}
      </div>
    </Section>
  );
}
