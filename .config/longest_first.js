// The order of the test files. The longest start first, so that no core idles at the end of a run behind one of them.

/** Seconds of the files that take longest, as `npm test` printed them on two cores; the order matters, not the figure. */
const seconds = {
  'test/e2e/kill_points.fault.ts': 128,
  'test/e2e/cancel.fault.ts': 89,
  'test/e2e/paused_worker.fault.ts': 89,
  'test/e2e/outages.fault.ts': 80,
  'test/readme/readme.e2e.ts': 75,
  'test/e2e/statuses.e2e.ts': 71,
  'test/e2e/slow_s3.fault.ts': 68,
  'test/disasters/temporal_lost.fault.ts': 58,
  'test/isolation/poison_exports.fault.ts': 53,
  'test/cli/cli.int.ts': 50,
  'test/export/resume.int.ts': 43,
  'test/export/files.int.ts': 41,
  'test/local_stack/demo_data.int.ts': 40,
  'test/temporal/reconcilers/reconcilers.int.ts': 32,
  'test/encoding/huge_values.int.ts': 31,
  'test/encoding/formats.int.ts': 31,
  'test/source/pages.int.ts': 27,
  'test/encoding/parquet/pages.unit.ts': 23,
  'test/encoding/parquet/row_group.unit.ts': 22,
};

/** Seconds of a file that is not listed, by its suffix. */
const usualSeconds = { fault: 20, e2e: 15, int: 5, replay: 4, unit: 1 };

/** A test sequencer of Jest: it orders by the durations above instead of by a cache that a fresh clone does not have. */
export default class LongestFirst {
  constructor({ globalConfig }) {
    this.rootDir = globalConfig.rootDir;
  }

  sort(tests) {
    return [...tests].sort((one, other) => this.secondsOf(other) - this.secondsOf(one));
  }

  secondsOf({ path }) {
    const name = path.slice(this.rootDir.length + 1);
    return seconds[name] ?? usualSeconds[name.split('.').at(-2)] ?? 1;
  }

  allFailedTests(tests) {
    return tests;
  }

  cacheResults() {
    // The order does not depend on earlier runs.
  }
}
