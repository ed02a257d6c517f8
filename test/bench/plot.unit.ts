import { describe, expect, it } from '@jest/globals';
import { barChart } from '../../src/bench/plot/bar_chart.ts';
import { chartsOf } from '../../src/bench/plot/charts.ts';
import { figuresPage } from '../../src/bench/plot/figures_page.ts';
import { ticksUpTo } from '../../src/bench/plot/svg.ts';
import { benchResult } from './bench_result.ts';

const textsOf = (svg: string | undefined): string[] =>
  [...(svg ?? '').matchAll(/<text [^>]*>([^<]*)</g)].map(([, text]) => text ?? '');

describe('charts of saved results', () => {
  it('show the ratios of the most repeated result', () => {
    const charts = chartsOf([
      { benchmark: 'exports', result: benchResult([44], { events: 10_000_000 }) },
      { benchmark: 'exports', result: benchResult([4, 4.2, 4.4]) },
    ]);
    const texts = textsOf(charts.get('ratios.svg'));
    expect(texts).toEqual(
      expect.arrayContaining([
        'Time to export 1 million events, 2 cores',
        'time ÷ floor, median and range of 3 repeats (less is faster)',
        'psql | gzip -6 | upload',
        '5.00',
        'exportd Parquet+zstd',
        '2.10',
      ]),
    );
    expect(texts).not.toContain('DuckDB Parquet+zstd');
    expect([...charts.keys()]).toEqual(['ratios.svg', 'memory.svg']);
  });

  it('show the memory for each number of rows', () => {
    const result = (events: number) => ({
      benchmark: 'exports' as const,
      result: benchResult([4], { events }),
    });
    const memory = chartsOf([result(10_000_000), result(1_000_000)]).get('memory.svg');
    expect(textsOf(memory)).toEqual(
      expect.arrayContaining(['1 million rows', '10 million rows', 'peak resident memory, MB', '400 MB']),
    );
    expect(textsOf(memory).filter((text) => text === '300')).toHaveLength(3);
  });

  it('show the throughput of several workers', () => {
    const shared = { seconds: 1, busy_cores: 1, worker_cpu_seconds: 1, peak_memory_bytes: [1] };
    const large = {
      ...shared,
      rows: 1,
      rows_per_second: 1,
      megabytes_per_second: 10,
      ranges_per_worker: [1],
    };
    const { exports: _, ...measurement } = benchResult([4]);
    const svg = chartsOf([
      {
        benchmark: 'workers',
        result: {
          ...measurement,
          slots: 1,
          large_interval: {
            format: 'JSONLines+gzip',
            connection_bytes_per_second: 10e6,
            measurements: [
              { ...large, workers: 1, ratio: 1 },
              { ...large, workers: 4, ratio: 3.6 },
            ],
          },
          small_intervals: { exports: 8, rows_per_interval: 100, measurements: [] },
        },
      },
    ]).get('workers.svg');
    expect(textsOf(svg)).toEqual(
      expect.arrayContaining(['worker processes', 'one large interval, 10 MB/s per connection', '1', '4']),
    );
    expect(svg).toContain('<title>3.60</title>');
  });

  it('are on a page with the tables of the results', () => {
    const page = figuresPage([{ benchmark: 'exports', result: benchResult([4]) }], ['ratios.svg']);
    expect(page).toContain('![ratios](ratios.svg)');
    expect(page).toContain('on 2 cores (A & B)');
    expect(page).toContain('\n| psql \\| gzip -6 \\| upload | 10.00 |');
    expect(page).toMatch(/\n\| DuckDB: skipped \| {2}\| /);
  });

  it('are valid in a document', () => {
    const chart = barChart({
      title: 'a < b & "c"',
      axis: '',
      series: [],
      groups: [{ label: '<', bars: [{ value: 1, label: '1', series: 0 }] }],
    });
    expect(chart).toContain('a &#60; b &#38; &#34;c&#34;');
  });

  it('have round ticks', () => {
    expect(ticksUpTo(4.4)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(ticksUpTo(400)).toEqual([0, 100, 200, 300, 400]);
  });
});
