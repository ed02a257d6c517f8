import pg from 'pg';
import { readSettings } from '../config/settings.ts';
import { createSource } from '../source/postgres_source.ts';

/** application_name of the benchmark's connections. */
export const benchApplicationName = 'exportd-bench';

/** Statements that read the same columns and rows of events as exportd, in the same order. */
export interface ExportStatements {
  /** The rows in order, as a query. */
  readonly rows: string;
  /** The rows as binary COPY, as exportd reads them. */
  readonly copyBinary: string;
  /** The rows as JSON lines with the same fields as those of exportd. */
  readonly copyJson: string;
}

/** Exported columns that have another name in the relation. */
const relationColumns: Readonly<Record<string, string>> = { _inserted_at: 'inserted_at' };

/** The statements for the rows of an interval, with the columns of exportd's source. */
export async function exportStatements(
  databaseUrl: string,
  teamId: number,
  interval: { readonly start: string; readonly end: string },
): Promise<ExportStatements> {
  const source = createSource({
    sourceUrl: databaseUrl,
    settings: readSettings({ DATABASE_URL: databaseUrl }),
  });
  try {
    const columns = source.columns('events');
    const selected = columns.map(({ name }) => `${relationColumns[name] ?? name} as "${name}"`).join(', ');
    const rows = `select ${selected} from public.events where team_id = ${String(teamId)}
      and inserted_at >= '${interval.start}' and inserted_at < '${interval.end}' order by inserted_at, uuid`;
    return {
      rows,
      copyBinary: `copy (${rows}) to stdout (format binary)`,
      copyJson: `copy (select row_to_json(exported) from (${rows}) as exported) to stdout`,
    };
  } finally {
    await source.close();
  }
}

/** Methods that pg calls on a query object. */
interface CopyQuery extends pg.Submittable {
  callback: (error?: Error | null) => void;
  handleCopyData: (message: { chunk: Buffer }) => void;
  handleCommandComplete: () => void;
  handleReadyForQuery: () => void;
  handleError: (error: Error) => void;
}

/** Runs a COPY and discards its rows. @returns The number of bytes. */
export async function discardCopy(databaseUrl: string, copy: string): Promise<number> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: benchApplicationName,
    options: sessionOptions,
  });
  await client.connect();
  try {
    return await new Promise<number>((resolve, reject) => {
      let bytes = 0;
      const query: CopyQuery = {
        callback: (error) => (error ? reject(error) : resolve(bytes)),
        submit: (wire) => wire.query(copy),
        handleCopyData: ({ chunk }) => (bytes += chunk.length),
        handleCommandComplete: () => undefined,
        handleReadyForQuery: () => query.callback(),
        handleError: (error) => query.callback(error),
      };
      client.query(query);
    });
  } finally {
    await client.end();
  }
}

/** The options of exportd's connections, for the same query plans. */
export const sessionOptions = '-c timezone=UTC -c jit=off';

/** The environment that makes psql connect to a database without a secret in its arguments. */
export function psqlEnvironment(databaseUrl: string): NodeJS.ProcessEnv {
  const url = new URL(databaseUrl);
  const sslMode = url.searchParams.get('sslmode');
  return {
    ...process.env,
    PGHOST: url.searchParams.get('host') ?? url.hostname,
    PGPORT: url.port || '5432',
    PGUSER: decodeURIComponent(url.username),
    PGPASSWORD: decodeURIComponent(url.password),
    PGDATABASE: decodeURIComponent(url.pathname.slice(1)),
    PGAPPNAME: benchApplicationName,
    PGOPTIONS: sessionOptions,
    ...(sslMode !== null && { PGSSLMODE: sslMode }),
  };
}
