import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api';
import type { ExportedColumn } from '../../src/source/row_selection.ts';

/** A row as strings in column order. */
export type RowTexts = readonly (string | null)[];

/** Reads files with DuckDB, independently of exportd. */
export interface IndependentReader {
  /** Reads files with gzip, zstd or no compression. Loses digits of numbers within JSON, and its whitespace. */
  jsonLines(path: string, columns: readonly ExportedColumn[]): Promise<RowTexts[]>;
  /** The unchanged lines of a file that DuckDB accepts as JSON. */
  jsonTexts(path: string): Promise<string[]>;
  csv(path: string, columns: readonly ExportedColumn[]): Promise<RowTexts[]>;
  parquet(path: string, columns: readonly ExportedColumn[]): Promise<RowTexts[]>;
  close(): void;
}

/** Larger than any line in the tests. */
const maxLineLength = 128 * 1024 * 1024;

export async function startDuckDb(): Promise<IndependentReader> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  await connection.run(`set TimeZone = 'UTC'`);
  const columnList = (columns: readonly ExportedColumn[]): string =>
    `{${columns.map(({ name }) => `'${name}': 'VARCHAR'`).join(', ')}}`;
  return {
    jsonLines: (path, columns) =>
      textsOf(
        connection,
        `select * from read_json('${path}', format = 'newline_delimited', columns = ${columnList(columns)},
           maximum_object_size = ${maxLineLength})`,
      ),
    jsonTexts: async (path) => {
      const rows = await textsOf(
        connection,
        `select json::varchar from read_ndjson_objects('${path}', maximum_object_size = ${maxLineLength})`,
      );
      return rows.map(([line]) => line ?? '');
    },
    csv: (path, columns) =>
      textsOf(
        connection,
        `select * from read_csv('${path}', auto_detect = false, header = true, columns = ${columnList(columns)},
           delim = ',', quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false, new_line = '\\n',
           strict_mode = true, max_line_size = ${maxLineLength}, parallel = false)`,
      ),
    parquet: async (path, columns) => {
      const selected = columns.map((column) => `${parquetText(column)}::varchar`).join(', ');
      const rows = await textsOf(connection, `select ${selected} from read_parquet('${path}')`);
      return rows.map((row) => row.map((text, index) => numberText(text, columns[index])));
    },
    close() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

/** Times in microseconds and dates in days since 1970. */
function parquetText({ name, type }: ExportedColumn): string {
  if (type === 'timestamp') return `epoch_us("${name}")`;
  return type === 'date' ? `("${name}" - date '1970-01-01')` : `"${name}"`;
}

/** Numbers as JavaScript formats them. */
const numberText = (text: string | null, column: ExportedColumn | undefined): string | null =>
  text === null || column?.type !== 'double' ? text : String(Number(text.replace('inf', 'Infinity')));

async function textsOf(connection: DuckDBConnection, statement: string): Promise<RowTexts[]> {
  const reader = await connection.runAndReadAll(statement);
  return reader.getRowsJson() as RowTexts[];
}
