import { describe, expect, it } from '@jest/globals';
import { type MissingRows, RowsMissingInSource } from '../../src/domain/exported_files.ts';

const interval = { start: '2026-11-01T10:00:00.000Z', end: '2026-11-01T11:00:00.000Z' };

const messageOf = (rows: MissingRows): string =>
  new RowsMissingInSource(
    {
      ...rows,
      replaced: { run_id: 'replaced', generation: 1 },
      outcome: 'rows_missing',
      source: null,
      generation: null,
    },
    interval,
  ).message;

describe('The message of a held run', () => {
  it('says that late rows are not exported either', () => {
    const message = messageOf({ missing_rows: 2, bucket_rows: 10, source_rows: 12 });
    expect(message).toContain('it has 12 rows, at least 4 of them not exported yet.');
    expect(message).toMatch(/To keep them, do nothing; the new rows are then not exported\.$/);
  });

  it('says nothing about late rows when there are none', () => {
    const message = messageOf({ missing_rows: 2, bucket_rows: 10, source_rows: 8 });
    expect(message).toContain('it has 8 rows. Nothing was published');
    expect(message).toMatch(/To keep them, do nothing\.$/);
  });
});
