import type pg from 'pg';

/** How often a process sends a statement before its connections prepare it. */
const usesBeforePrepared = 5;
/** After so many statements all are counted anew: those of many exports may each have a text of their own. */
const maxCounted = 1_000;

interface PreparedStatementOptions {
  /** Each connection keeps the plans of so many statements, some ten kB each, and more if a table has many partitions. */
  readonly max: number;
  /** Whether a connection keeps them between transactions. */
  readonly keepsThem?: (client: pg.PoolClient) => boolean;
}

/**
 * Lets the connections of a pool prepare each statement with an array of parameters, which may be empty, that has been sent some
 * times: PostgreSQL then parses it once for each connection, and plans it once if a plan for all parameters is as good as others.
 */
export function prepareStatements(
  pool: pg.Pool,
  { max, keepsThem = () => true }: PreparedStatementOptions,
): void {
  const uses = new Map<string, number>();
  const names = new Map<string, string>();
  const nameOf = (text: string): string | undefined => {
    const known = names.get(text);
    if (known !== undefined || names.size >= max) return known;
    const count = (uses.get(text) ?? 0) + 1;
    if (uses.size >= maxCounted) uses.clear();
    uses.set(text, count);
    if (count <= usesBeforePrepared) return undefined;
    const name = `repeated-${String(names.size + 1)}`;
    names.set(text, name);
    return name;
  };
  pool.on('connect', (client) => {
    const send = client.query.bind(client) as (...input: unknown[]) => unknown;
    const query = (text: unknown, values: unknown, ...rest: unknown[]): unknown => {
      const name =
        typeof text === 'string' && Array.isArray(values) && keepsThem(client) ? nameOf(text) : undefined;
      return name === undefined ? send(text, values, ...rest) : send({ name, text, values }, ...rest);
    };
    client.query = query as typeof client.query;
  });
}

/** Whether a pooler answers for PostgreSQL: it tells clients another process id than that of the server's process. */
export const isPooled = (client: pg.PoolClient, backend: number): boolean =>
  (client as pg.PoolClient & { readonly processID: number | null }).processID !== backend;
