import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { saveResult } from '../results.ts';
import { compareResults, comparisonTable, readSavedResult } from './compare.ts';
import { exportsResult } from './exports_result.ts';

describe('a comparison of results', () => {
  it('has the ratios of the programs that both measured', () => {
    const then = exportsResult([4, 4.2, 4.4]);
    const now = exportsResult([3, 3.1, 3.3], {
      pipeline: { skipped: 'Not requested.' },
      started_at: '2026-11-24T12:00:00.000Z',
    });
    const { programs, warnings, then: earlier } = compareResults(now, then);
    expect({ warnings, earlier }).toEqual({ warnings: [], earlier: '2026-11-23T12:00:00.000Z' });
    expect(programs.map(({ program }) => program)).toEqual(['floor', 'exportd Parquet+zstd']);
    expect(programs[1]?.figures).toMatchObject({
      ratio_to_floor: { now: 1.55, then: 2.1, change: -0.262, overlaps: false },
      ratio_to_duckdb: null,
      cpu_seconds: { now: 4, then: 4, change: 0, overlaps: true },
    });
  });

  it('marks changes within the range of the repeats', () => {
    const comparison = compareResults(exportsResult([3.9, 4.1, 4.3]), exportsResult([4, 4.2, 4.4]));
    const { headings, rows } = comparisonTable(comparison);
    expect(headings.slice(0, 4)).toEqual(['export', '÷ floor', '÷ pipeline', '÷ DuckDB']);
    expect(rows.at(-1)?.slice(0, 4)).toEqual([
      'exportd Parquet+zstd',
      '2.05 (2.10, ~-2.4 %)',
      '0.41 (0.42, ~-2.4 %)',
      '-',
    ]);
  });

  it('says that events or machines differ', () => {
    const then = exportsResult([4]);
    const machine = { ...then.machine, cpus: 8 };
    const comparison = compareResults(exportsResult([4], { events: 2_000, machine }), then);
    expect(comparison.warnings).toEqual([
      'The number of events differs: 2000 now, 1000000 then.',
      "The machine's cpus differs: 8 now, 2 then.",
    ]);
    expect(comparisonTable(comparison).title).toContain(comparison.warnings.join('\n'));
  });
});

describe('a saved result', () => {
  it('is read, and other files are rejected', () => {
    const folder = mkdtempSync(join(tmpdir(), 'exportd-bench-'));
    const file = join(folder, 'result.json');
    try {
      saveResult(file, exportsResult([4]));
      expect(readSavedResult(file)).toEqual(exportsResult([4]));
      writeFileSync(file, '[1]');
      expect(() => readSavedResult(file)).toThrow('is not a saved result');
      saveResult(file, { large_interval: {}, small_intervals: {} });
      expect(() => readSavedResult(file)).toThrow('is a result of bench workers');
      expect(() => readSavedResult(join(folder, 'none.json'))).toThrow('cannot be read');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
