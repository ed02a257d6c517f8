import { statSync } from 'node:fs';
import Sequencer from '@jest/test-sequencer';

/** Suffixes of files that wait for most of their time: for processes that they start, block or kill. */
const waiting = ['long', 'fault', 'e2e'];

/** When the last file that waits starts, as a part of all files: those that are left then keep the cores busy to the end. */
const lastWait = 0.7;

/**
 * The order of the test files. Files that wait are spread among those that compute, so that the cores always have work. Of each
 * sort a longer file, which usually takes longer, starts earlier: no core idles behind one of them at the end of a run.
 */
export default class WaitsAmongWork extends Sequencer {
  sort(tests) {
    const files = tests.map((test) => ({
      test,
      waits: waiting.includes(test.path.split('.').at(-2)),
      size: statSync(test.path).size,
    }));
    const placed = [true, false].flatMap((waits) => {
      const ofSort = files.filter((file) => file.waits === waits).sort((one, other) => other.size - one.size);
      const length = waits ? lastWait : 1;
      return ofSort.map(({ test }, index) => ({ test, place: (index / ofSort.length) * length }));
    });
    return placed.sort((one, other) => one.place - other.place).map(({ test }) => test);
  }
}
