// The order of the test files. The longest start first, so that no core idles at the end of a run behind one of them.

/** Seconds of the files that take longest, as `npm test` printed them on two cores; the order matters, not the figure. */
const seconds = {
  'test/readme/readme.e2e.ts': 120,
  'test/e2e/kill_points.fault.ts': 90,
  'test/e2e/cancel.fault.ts': 85,
  'test/e2e/paused_worker.fault.ts': 85,
  'test/e2e/statuses.e2e.ts': 80,
  'test/e2e/outages.fault.ts': 70,
  'test/e2e/slow_s3.fault.ts': 68,
  'test/disasters/temporal_lost.fault.ts': 65,
  'test/e2e/batch_export_actions.e2e.ts': 60,
  'test/console/journey.e2e.ts': 60,
  'test/e2e/late_transactions.fault.ts': 55,
  'test/e2e/destination_test.e2e.ts': 50,
  'test/isolation/poison_exports.fault.ts': 50,
  'test/cli/cli.int.ts': 35,
  'test/console/edit_and_query_pages.int.ts': 35,
  'test/console/export_pages.int.ts': 35,
  'test/bench/bench.e2e.ts': 30,
  'test/encoding/parquet/pages.unit.ts': 30,
  'test/temporal/worker/rejected.int.ts': 30,
  'test/temporal/reconcilers/reconcilers.int.ts': 30,
  'test/workflows/run.int.ts': 30,
  'test/export/equal_parts.int.ts': 30,
  'test/maintenance/promise.int.ts': 30,
  'test/export/resume.int.ts': 28,
  'test/local_stack/demo_data.int.ts': 28,
  'test/export/files.int.ts': 25,
  'test/encoding/parquet/random_file.unit.ts': 25,
  'test/source/pages.int.ts': 22,
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
