import { readSettings, type Settings } from '../../src/config/settings.ts';
import type { SortKey } from '../../src/domain/sort_key.ts';
import { createSource } from '../../src/source/postgres_source.ts';
import { allRows, type ColumnType } from '../../src/source/row_selection.ts';
import { fieldOf, formatUuid } from '../../src/source/binary_tuple.ts';
import { dayLength, formatTimestamp, writeDate } from '../../src/source/write_timestamp.ts';
import type { SourceMonitor } from '../../src/source/source_connection.ts';
import type { KeyBounds, RowBlock, RowRange, Source } from '../../src/source/source.ts';

/** A source with the given settings, durations in milliseconds and sizes in bytes. It has no settle delay by default. */
export const sourceOf = (url: string, settings: Partial<Settings> = {}): Source & SourceMonitor =>
  createSource({
    sourceUrl: url,
    settings: { ...readSettings({ DATABASE_URL: url, EXPORTD_SETTLE_DELAY: '0s' }), ...settings },
  });

/** The rows of project 1 that were inserted or updated in one hour, 10:00 to 11:00. */
export const hourOf = (model: RowRange['model']): RowRange => ({
  model,
  team_id: 1,
  interval: { start: '2026-11-01T10:00:00Z', end: '2026-11-01T11:00:00Z' },
  selection: allRows,
});

/** Key bounds of a whole range. */
export const wholeRange: KeyBounds = { after: null, until: null };

export const neverAborted = (): AbortSignal => new AbortController().signal;

/** The blocks of a key range, by default of the whole range. */
export async function blocksOf(
  source: Source,
  range: RowRange,
  options: { after?: SortKey | null; until?: SortKey | null; blockBytes?: number; signal?: AbortSignal } = {},
): Promise<RowBlock[]> {
  const { blockBytes = 2 * 1024 * 1024, signal = neverAborted(), ...keys } = options;
  const blocks: RowBlock[] = [];
  for await (const block of source.blocks(range, { ...wholeRange, ...keys }, { blockBytes, signal }))
    blocks.push(block);
  return blocks;
}

/** The rows of a block by column name; bigints as numbers, times as strings. */
export function rowsOf({ block, columns }: RowBlock): Record<string, unknown>[] {
  const rows: Record<string, unknown>[] = [];
  let at = 0;
  while (at < block.length) {
    const tuple = at;
    const fields = columns.map((_, field) => fieldOf(block, tuple, field));
    rows.push(
      Object.fromEntries(
        columns.map(({ name, type }, field) => {
          const { start = 0, end = 0 } = fields[field] ?? {};
          return [name, end < start ? null : valueOf(block, type, start, end)];
        }),
      ),
    );
    const last = fields.at(-1);
    at = Math.max(last?.start ?? 0, last?.end ?? 0);
  }
  return rows;
}

function valueOf(block: Buffer, type: ColumnType, start: number, end: number): unknown {
  switch (type) {
    case 'uuid':
      return formatUuid(block, start);
    case 'timestamp':
      return formatTimestamp(block, start);
    case 'text':
      return block.toString('utf8', start, end);
    case 'json':
      return JSON.parse(block.toString('utf8', block[start] === 1 ? start + 1 : start, end)) as unknown;
    case 'bigint':
      return Number(block.readBigInt64BE(start));
    case 'integer':
      return block.readInt32BE(start);
    case 'double':
      return block.readDoubleBE(start);
    case 'date': {
      const text = Buffer.alloc(dayLength);
      return writeDate(text, 0, block.readInt32BE(start)) ? text.toString('latin1') : undefined;
    }
    case 'boolean':
      return block[start] === 1;
  }
}
