import { statSync } from 'node:fs';
import Sequencer from '@jest/test-sequencer';

/** The suffixes of test files, the one whose files take longest first. */
const suffixes = ['long', 'fault', 'e2e', 'replay', 'int', 'unit'];

/**
 * The order of the test files: files that take longest start first, so that no core idles behind one of them at the end of
 * a run. A suffix says what a file costs; of those with one suffix, a longer file usually takes longer.
 */
export default class LongestFirst extends Sequencer {
  sort(tests) {
    const files = tests.map((test) => {
      const suffix = test.path.split('.').at(-2);
      return { test, rank: suffixes.indexOf(suffix), size: statSync(test.path).size };
    });
    return files.sort((one, other) => one.rank - other.rank || other.size - one.size).map(({ test }) => test);
  }
}
