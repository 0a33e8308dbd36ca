// All processes and loops that are watched, one in each row.

import type { Documents } from "./documents";
import { duration, number, percent, program } from "./format";
import { quantile, since, timesAt, total } from "./history";
import type { Model } from "./model";
import { Bar, Section } from "./parts";

export const loopName = (id: string, name: string) => (name ? `loop ${id} (${name})` : `loop ${id}`);

export function Loops({ model }: { model: Model }) {
  const all = [...model.moment.processes].filter(([, documents]) => documents.turn.size);
  const many = all.reduce((sum, [, documents]) => sum + documents.turn.size, 0);
  if (many < 2) return null;
  return (
    <Section id="loops" title="Loops" class="loops-panel" note="Choose one to see it alone.">
      <div class="scroll" tabIndex={0} role="region" aria-label="All loops">
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">loop</th>
              <th scope="col">state</th>
              <th scope="col" class="number">busy</th>
              <th scope="col" class="wide"><span class="hidden">share</span></th>
              <th scope="col" class="number">delay p99</th>
              <th scope="col" class="number wide">turns/s</th>
              <th scope="col" class="number wide">calls/s</th>
              <th scope="col" class="number wide">requests</th>
            </tr>
          </thead>
          {all.map(([pid, documents]) => (
            <Process key={pid} model={model} pid={pid} documents={documents} isOne={all.length === 1} />
          ))}
        </table>
      </div>
    </Section>
  );
}

function Process({ model, pid, documents, isOne }: { model: Model; pid: number; documents: Documents; isOne: boolean }) {
  const { moment, before } = model;
  const old = before?.processes.get(pid);
  const span = Math.max(1, moment.at - (before?.at ?? moment.at));
  const process = documents.process;
  return (
    <tbody>
      {!isOne && (
        <tr class="group">
          <th scope="rowgroup" colSpan={8}>
            <button type="button" class="quiet" aria-pressed={model.pid === pid && model.loop === null} onClick={() => model.choose(model.pid === pid && model.loop === null ? null : pid, null)}>
              {program(process?.program ?? "")} <span class="note">process {pid}{process?.state === "ended" ? ", ended" : ""}</span>
            </button>
          </th>
        </tr>
      )}
      {[...documents.turn].map(([id, turn]) => {
        const past = old?.turn.get(id);
        const spent = past ? timesAt(past, before!.at) : [0, 0, 0, 0, 0];
        const times = timesAt(turn, moment.at).map((time, state) => Math.max(0, time - spent[state]!));
        const whole = times.reduce((a, b) => a + b, 0);
        const busy = percent(times[1]! + times[2]!, whole);
        const waits = since(turn.delay, past?.delay);
        const isChosen = model.loop === id && (model.pid === pid || isOne);
        return (
          <tr key={id} class={isChosen ? "chosen" : ""}>
            <th scope="row">
              <button type="button" class="quiet" aria-pressed={isChosen} onClick={() => (isChosen ? model.leave() : model.choose(isOne ? model.pid : pid, id))}>
                {loopName(id, documents.loop.get(id)?.name ?? "")}
              </button>
            </th>
            <td>{turn.state === "callback" ? `${turn.kind} ` : `${turn.state} `}{duration(moment.at - turn.since)}</td>
            <td class="number">{Math.round(busy)} %</td>
            <td class="wide bar"><Bar share={busy / 100} /></td>
            <td class="number">{total(waits) ? duration(quantile(waits, 0.99)) : "–"}</td>
            <td class="number wide">{number(((turn.turns - (past?.turns ?? 0)) * 1e9) / span)}</td>
            <td class="number wide">{number(((turn.callbacks - (past?.callbacks ?? 0)) * 1e9) / span)}</td>
            <td class="number wide">{turn.requests}</td>
          </tr>
        );
      })}
    </tbody>
  );
}
