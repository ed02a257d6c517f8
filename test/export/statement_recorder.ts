import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';
import type { PageThreads } from '../../src/source/source.ts';

/** A message to PostgreSQL, and where it comes from. */
interface SentMessage {
  /** The step of the run, and the function of its recorder or the file of exportd that sends it. */
  readonly place: string;
  /** Statements besides those that begin and end a transaction. */
  readonly statements: number;
  /** Transactions that it ends: a statement outside of one is one. */
  readonly commits: number;
  readonly text: string;
}

/** What a place sends. */
export interface PlaceCost {
  readonly messages: number;
  readonly statements: number;
  readonly commits: number;
}

/** Statements that a connection sends once, before its first work. */
const isOfNewConnection = (text: string): boolean =>
  text.startsWith('select pg_is_in_recovery() as standby,');

/** Files that send what others ask them to. */
const senders = [
  'src/journal/database.ts',
  'src/journal/journal.ts',
  'src/journal/pending_writes.ts',
  'src/projections/registry.ts',
  'src/projections/row_cache.ts',
  'src/projections/row_writes.ts',
  'src/projections/stream_states.ts',
  'src/network/prepared_statements.ts',
  'src/source/known_columns.ts',
  'src/source/project_shares.ts',
  'src/source/read_fingerprints.ts',
  'src/source/read_keys.ts',
  'src/source/read_ranges.ts',
  'src/source/read_sample.ts',
  'src/source/relations.ts',
  'src/source/source_connection.ts',
  'src/tracing/spans.ts',
];

/** The file of exportd that has caused a statement, by the stack of the call that sends it. */
function fileOf(stack: string): string {
  const files = [...stack.matchAll(/\/((?:src|activities)\/[^:()]+\.ts)/g)].map(([, file = '']) => file);
  return files.find((file) => !senders.includes(file)) ?? files.at(-1) ?? 'unknown';
}

/** Whether a message leaves its session inside a transaction; undefined if it does not change that. */
function transactionAfter(text: string): boolean | undefined {
  if (/^begin\b/i.test(text)) return true;
  return /^(commit|rollback)\b/i.test(text) ? false : undefined;
}

function stackOfCall(): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 100;
  const { stack = '' } = new Error('the call that sends a statement');
  Error.stackTraceLimit = stackTraceLimit;
  return stack;
}

/** Records the statements of this process, while a step of a run is under way. `stop` ends it. */
export function recordStatements() {
  const steps = new AsyncLocalStorage<string>();
  const functions = new AsyncLocalStorage<string>();
  /** The file that has called a pool, whose clients no longer know it. */
  const callers = new AsyncLocalStorage<string>();
  const open = new WeakSet();
  const sent: SentMessage[] = [];
  const query = Reflect.get(pg.Client.prototype, 'query') as (...input: unknown[]) => unknown;

  const record = (client: object, text: string, stack: string): void => {
    const step = steps.getStore();
    const after = transactionAfter(text);
    const isInside = open.has(client);
    if (after === true) open.add(client);
    if (after === false) open.delete(client);
    if (step === undefined || isOfNewConnection(text)) return;
    sent.push({
      place: `${step}, ${functions.getStore() ?? callers.getStore() ?? fileOf(stack)}`,
      statements: after === undefined ? 1 : 0,
      commits: after === false || (after === undefined && !isInside) ? 1 : 0,
      text,
    });
  };
  const recorded = function (this: pg.Client, ...input: unknown[]): unknown {
    const [first] = input;
    const text = typeof first === 'string' ? first : (first as { text?: string }).text;
    record(this, text?.trimStart() ?? 'copy', stackOfCall());
    return Reflect.apply(query, this, input);
  };
  const queryOfPool = Reflect.get(pg.Pool.prototype, 'query') as (...input: unknown[]) => unknown;
  const recordedOfPool = function (this: pg.Pool, ...input: unknown[]): unknown {
    return callers.run(fileOf(stackOfCall()), () => Reflect.apply(queryOfPool, this, input));
  };
  Reflect.set(pg.Pool.prototype, 'query', recordedOfPool);
  Reflect.set(pg.Client.prototype, 'query', recorded);

  return {
    /** Does a step of a run, to which its statements belong. */
    inStep: <Result>(step: string, work: () => Promise<Result>): Promise<Result> => steps.run(step, work),
    /** The functions of an object, whose statements belong to them by name. */
    named: <Functions extends object>(name: string, of: Functions): Functions =>
      new Proxy(of, {
        get: (target, property) => {
          const value: unknown = Reflect.get(target, property);
          if (typeof value !== 'function') return value;
          return (...input: unknown[]): unknown =>
            functions.run(
              `${name}.${String(property)}`,
              () => Reflect.apply(value, target, input) as unknown,
            );
        },
      }),
    /** Threads whose pages count as what each of them sends: a transaction with one COPY. */
    threads: (of: PageThreads): PageThreads => ({
      ...of,
      readPage: (source, page, signal) => {
        const place = `${steps.getStore() ?? ''}, a page in a thread`;
        sent.push({ place, statements: 0, commits: 0, text: 'begin' });
        sent.push({ place, statements: 1, commits: 0, text: page.select });
        sent.push({ place, statements: 0, commits: 1, text: 'commit' });
        return of.readPage(source, page, signal);
      },
    }),
    /** Takes what was sent since it was last called. */
    take: (): readonly SentMessage[] => sent.splice(0),
    stop: (): void => {
      Reflect.set(pg.Client.prototype, 'query', query);
      Reflect.set(pg.Pool.prototype, 'query', queryOfPool);
    },
  };
}

const none: PlaceCost = { messages: 0, statements: 0, commits: 0 };

const plus = (cost: PlaceCost, { statements, commits }: SentMessage): PlaceCost => ({
  messages: cost.messages + 1,
  statements: cost.statements + statements,
  commits: cost.commits + commits,
});

/** Adds up messages. */
export const costOf = (sent: readonly SentMessage[]): PlaceCost => sent.reduce(plus, none);

/** Adds up messages by place, in the order in which places send their first. */
export const costByPlace = (sent: readonly SentMessage[]): Readonly<Record<string, PlaceCost>> =>
  Object.fromEntries([...Map.groupBy(sent, ({ place }) => place)].map(([place, of]) => [place, costOf(of)]));
