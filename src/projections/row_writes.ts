import type { Connection } from '../journal/database.ts';
import type { PendingWrite } from '../journal/journal.ts';

/** The value of a key, which `create` makes if it is missing. */
export function entryOf<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const created = create();
  map.set(key, created);
  return created;
}

/** Statements by the words that tell them apart. */
interface StatementTexts {
  text?: string;
  readonly next: Map<string, StatementTexts>;
}

const statementTexts: StatementTexts = { next: new Map() };

/** The statement of some words, which is built once. An append of a few rows would otherwise spend its time on building texts. */
export function statementOf(words: Iterable<string>, build: () => string): string {
  let known = statementTexts;
  for (const word of words) known = entryOf(known.next, word, () => ({ next: new Map() }));
  known.text ??= build();
  return known.text;
}

/** Each mixture of changes is a statement of its own, which connections prepare. */
const maxWritesPerStatement = 8;

/**
 * Sends changes in their order. Those of few rows share a statement: its parts do not see one another's changes, so that a row
 * which is written twice needs two.
 */
export async function sendWrites(connection: Connection, writes: Iterable<PendingWrite>): Promise<void> {
  let together: PendingWrite[] = [];
  const send = async (): Promise<void> => {
    const writes = together;
    together = [];
    if (writes.length > 0) await sendTogether(connection, writes);
  };
  for (const write of writes) {
    const isAlone = write.words === undefined;
    const isFull = together.length === maxWritesPerStatement;
    if (isAlone || isFull || together.some(({ target }) => target === write.target)) await send();
    together.push(write);
    if (isAlone) await send();
  }
  await send();
}

async function sendTogether(connection: Connection, writes: readonly PendingWrite[]): Promise<void> {
  const words = writes.flatMap((write) => write.words ?? []);
  const text = words.length === 0 ? textOf(writes) : statementOf(words, () => textOf(writes));
  await connection.query(
    text,
    writes.flatMap(({ values }) => values),
  );
}

function textOf(writes: readonly PendingWrite[]): string {
  let parameters = 1;
  const texts = writes.map(({ text, values }) => {
    const first = parameters;
    parameters += values.length;
    return text(first);
  });
  const last = texts.pop() ?? '';
  if (texts.length === 0) return last;
  return `with ${texts.map((text, index) => `written_${String(index)} as (${text})`).join(', ')} ${last}`;
}
