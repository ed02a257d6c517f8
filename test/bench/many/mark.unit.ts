import { describe, expect, it } from '@jest/globals';
import {
  boundsOf,
  findFailures,
  findWrongRuns,
  intervals,
  landingOf,
  nextMark,
  planExports,
  projectsFor,
  rowsStart,
  type MarkRun,
} from './mark.ts';

const markAt = Date.parse('2026-11-29T10:02:00.000Z');

const run = (batch_export_id: string, more: Partial<MarkRun> = {}): MarkRun => ({
  batch_export_id,
  status: 'Completed',
  manifest_key: `${batch_export_id}/_manifests/manifest.json`,
  records_completed: 0,
  finished_at: '2026-11-29T10:02:32.500Z',
  ...more,
});

describe('3,000 exports', () => {
  it('are half of each interval, of which half have rows, and as many in each project', () => {
    const planned = planExports(3_000);
    for (const wanted of intervals)
      for (const rows of [0, 20])
        expect(planned.filter((one) => one.interval === wanted && one.rows === rows)).toHaveLength(750);
    const ofProjects = Map.groupBy(planned, ({ project }) => project);
    expect(projectsFor(3_000)).toBe(100);
    expect([...ofProjects.values()].map(({ length }) => length)).toEqual(Array(100).fill(30));
    expect(new Set(planned.map(({ name }) => name)).size).toBe(3_000);
  });
});

describe('a few exports', () => {
  it('have a project with rows and one without', () => {
    expect(planExports(4).map(({ project, rows, interval }) => [project, rows, interval])).toEqual([
      [0, 20, intervals[0]],
      [1, 0, intervals[0]],
      [0, 20, intervals[1]],
      [1, 0, intervals[1]],
    ]);
  });
});

describe('a mark', () => {
  it('ends an interval of each length', () => {
    expect(nextMark(markAt, 0)).toBe(markAt);
    expect(nextMark(markAt - 119_999, 0)).toBe(markAt);
    expect(nextMark(markAt - 119_999, 120_000)).toBe(markAt + 120_000);
  });

  it('bounds the exports to the intervals that end at it, whose rows precede it', () => {
    expect(boundsOf(markAt)).toEqual({
      start_at: '2026-11-29T10:01:30.000Z',
      end_at: '2026-11-29T10:02:00.000Z',
    });
    expect(rowsStart(markAt).toISOString()).toBe('2026-11-29T10:01:00.000Z');
  });
});

describe('the landing of runs', () => {
  it('is counted from the mark, and lacks runs that did not complete', () => {
    const runs = Array.from({ length: 20 }, (_, index) =>
      run(String(index), { finished_at: new Date(markAt + (index + 1) * 1_000).toISOString() }),
    );
    const others = [
      run('failed', { status: 'Failed' }),
      run('running', { status: 'Running', finished_at: null }),
    ];
    expect(landingOf([...runs, ...others], markAt)).toEqual({ runs: 20, median: 10, p95: 19, last: 20 });
  });

  it('is null without runs', () => {
    expect(landingOf([], markAt)).toEqual({ runs: 0, median: null, p95: null, last: null });
  });
});

describe('rows that did not land exactly once', () => {
  const created = new Map(planExports(2).map((one) => [one.name, one]));
  const keys = (...more: readonly string[]) =>
    new Set([
      'many-1/_manifests/manifest.json',
      'many-1/20261129T100100Z-20261129T100200Z.jsonl.gz',
      'many-2/_manifests/manifest.json',
      ...more,
    ]);
  const good = [run('many-1', { records_completed: 20 }), run('many-2')];

  it('are none if each export has a run, its rows, a manifest and the files', () => {
    expect(findWrongRuns(created, good, keys())).toEqual([]);
  });

  it('are found by run, manifest, rows and files', () => {
    expect(findWrongRuns(created, [run('many-2')], keys())).toEqual(['many-1 has no run.']);
    expect(findWrongRuns(created, [...good, run('many-2')], keys())).toEqual(['many-2 has 2 runs.']);
    expect(findWrongRuns(created, [run('many-1', { status: 'Failed' }), run('many-2')], keys())).toEqual([
      'The run of many-1 is Failed.',
    ]);
    expect(findWrongRuns(created, [run('many-1'), run('many-2', { manifest_key: null })], keys())).toEqual([
      'The run of many-1 has 0 rows instead of 20.',
      'The run of many-2 has no manifest.',
    ]);
    expect(findWrongRuns(created, good, keys('many-1/second-g2.jsonl.gz', 'many-2/first.jsonl.gz'))).toEqual([
      'The run of many-1 has 2 files instead of 1.',
      'The run of many-2 has 1 files instead of 0.',
    ]);
  });
});

describe('a measurement', () => {
  const good = { workers: 2, wrong_runs: [], ratio_to_noop: 0.6, memory: [{ peak_bytes: 500e6 }] };

  it('passes if all rows landed, in time and in little memory', () => {
    expect(findFailures(3_000, good)).toEqual([]);
  });

  it('fails with wrong runs, a worker of more than 600 MB, or a slow mark', () => {
    const wrong_runs = Array.from({ length: 12 }, (_, index) => `many-${String(index)} has no run.`);
    expect(findFailures(3_000, { ...good, wrong_runs })).toHaveLength(11);
    const memory = [{ peak_bytes: null }, { peak_bytes: 601e6 }];
    expect(findFailures(3_000, { ...good, memory })).toEqual([
      'Workers 2: A worker had 601 MB, more than 600.',
    ]);
    expect(findFailures(3_000, { ...good, ratio_to_noop: 0.1 })).toEqual([
      'Workers 2: The mark had 0.1 of the rate of no-op workflows, less than 0.35.',
    ]);
  });

  it('of few exports says nothing of the rate', () => {
    expect(findFailures(12, { ...good, ratio_to_noop: 0.05 })).toEqual([]);
  });
});
