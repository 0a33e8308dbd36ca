// The answers as sentences, with what they rest on.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Code, VerdictMark } from "./parts";
import type { Answer, Documents, Verdict } from "./documents";
import { bounded, program } from "./format";

const WEIGHT: Record<Verdict, number> = { fine: 0, notice: 1, bad: 2 };

// Of each question the worst answer of all processes, and whose it is.
function worst(shown: [number, Documents][]): { answer: Answer; pid: number; documents: Documents }[] {
  const found: { answer: Answer; pid: number; documents: Documents }[] = [];
  for (const [pid, documents] of shown) {
    documents.answers.forEach((answer, at) => {
      const old = found[at];
      if (!old || WEIGHT[answer.verdict] > WEIGHT[old.answer.verdict]) found[at] = { answer, pid, documents };
    });
  }
  return found;
}

// What is said first, and what explains it. Code in it is set as code.
function Sentence({ text: whole }: { text: string }) {
  const text = bounded(whole);
  const lead = /^((?:Loop \d+(?: \([^)]*\))?: )?.{4,}?[:;.]) /.exec(text)?.[1] ?? text;
  return (
    <>
      <span class="lead"><Words text={lead} /></span>
      <Words text={text.slice(lead.length)} />
    </>
  );
}

// The parts of a text, every other of which is code with its place. A name is looked for where a word begins, so that a long text takes a
// time that grows with its length and not with the square of it.
export function codeParts(text: string): string[] {
  return text.split(/((?<!\S)\S+ \([^\s()]+:\d+\))/);
}

function Words({ text }: { text: string }) {
  const parts = codeParts(text);
  return <>{parts.map((part, at) => (at % 2 ? <Code key={at} name={part} /> : part))}</>;
}

// How long an answer keeps the room that it has had.
const ROOM_MS = 8_000;

// A sentence that changes keeps the greatest height of the last seconds, so that it does not push the page up and down.
function Steady({ children }: { children: ComponentChildren }) {
  const outer = useRef<HTMLSpanElement>(null);
  const inner = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const [room, text] = [outer.current, inner.current];
    if (!room || !text) return;
    const details = room.closest("details");
    let [held, width, isOpen] = [0, 0, false];
    let shrinks: number | undefined;
    const hold = () => {
      clearTimeout(shrinks);
      shrinks = undefined;
      held = text.offsetHeight;
      room.style.minHeight = `${held}px`;
    };
    const observer = new ResizeObserver(() => {
      // Another window is another room, and what the reader opens or closes is not to last.
      const isOther = room.offsetWidth !== width || details?.open !== isOpen;
      if (text.offsetHeight >= held || isOther) hold();
      else shrinks ??= window.setTimeout(hold, ROOM_MS);
      [width, isOpen] = [room.offsetWidth, details?.open ?? false];
    });
    observer.observe(text);
    return () => {
      clearTimeout(shrinks);
      observer.disconnect();
    };
  }, []);
  return <span class="room" ref={outer}><span class="sentence" ref={inner}>{children}</span></span>;
}

export function Answers({ shown }: { shown: [number, Documents][] }) {
  const answers = worst(shown);
  return (
    <section id="answers" class="answers" aria-labelledby="answers-title" tabIndex={-1}>
      <h2 id="answers-title" class="hidden">Answers</h2>
      {answers.map(({ answer, pid, documents }) => (
        <details key={answer.word} class={`answer ${answer.verdict}`}>
          <summary>
            <VerdictMark verdict={answer.verdict} />
            <span class="question">{answer.question}</span>
            <Steady>
              {shown.length > 1 && <span class="whose">{program(documents.process?.program ?? "")} ({pid}): </span>}
              <Sentence text={answer.sentence} />
            </Steady>
            <span class="chevron" aria-hidden="true" />
          </summary>
          {answer.evidence.length ? (
            <ul class="evidence">
              {answer.evidence.map((line, at) => (
                <li key={at}>{bounded(line)}</li>
              ))}
            </ul>
          ) : (
            <p class="evidence">There is no more to it than the sentence.</p>
          )}
        </details>
      ))}
      {!answers.length && <p class="empty">Nothing was read yet.</p>}
    </section>
  );
}
