import { cacheFolder } from '../data_folder.ts';
import { createReport } from '../report.ts';
import { listenForShutdown } from '../child_processes.ts';
import {
  allChecks,
  bringPrograms,
  type Check,
  type Counts,
  runChecks,
  runJest,
  stopPrograms,
} from './checks.ts';

interface Plan {
  readonly checks: readonly Check[];
  /** Whether tests of every kind run, so that all they need is brought first. */
  readonly isWhole: boolean;
  readonly jestArguments: readonly string[];
}

/** Leaves out what takes an hour; it is last, because the option takes all values that follow. */
const usualProjects = ['--ignoreProjects', 'long'];

/** Work of tests with random cases in a long run: test/setup/effort.ts. */
const longEffort = '20';

/** What the arguments of `npm test` ask for: everything by default; a pattern or an option of Jest leaves out the checks. */
function planOf([first, ...others]: readonly string[]): Plan {
  if (first === undefined) return { checks: allChecks, isWhole: true, jestArguments: usualProjects };
  if (first === '--quick')
    return {
      checks: ['lint'],
      isWhole: false,
      jestArguments: [...others, '--selectProjects', 'unit', 'replay'],
    };
  if (first === '--long') {
    process.env.EXPORTD_TEST_EFFORT = longEffort;
    return { checks: [], isWhole: others.length === 0, jestArguments: others };
  }
  return { checks: [], isWhole: false, jestArguments: [first, ...others, ...usualProjects] };
}

/** Runs Jest, after bringing what tests of every kind need. */
async function runTests({ isWhole, jestArguments }: Plan): Promise<Counts> {
  if (isWhole && !(await bringPrograms())) return { passed: 0, failed: 1 };
  return runJest(jestArguments);
}

/** Runs the checks beside the tests. The last line says how many passed, in the form that CI reads. */
async function main(): Promise<void> {
  void listenForShutdown(() => process.exit(130)).first.then(() => {
    stopPrograms();
    process.exitCode = 130;
  });
  const plan = planOf(process.argv.slice(2));
  const report = createReport();
  // Of Jest's processes, and of the two hundred that tests start.
  process.env.NODE_COMPILE_CACHE = cacheFolder('compiled');
  if (plan.checks.length > 0) report(`Checks, beside the tests: ${plan.checks.join(', ')}`);
  const [checked, tested] = await Promise.all([runChecks(plan.checks, report), runTests(plan)]);
  process.stdout.write(checked.failures);
  const failed = checked.failed + tested.failed;
  process.exitCode ??= failed === 0 ? 0 : 1;
  process.stdout.write(`\n${String(checked.passed + tested.passed)} passed, ${String(failed)} failed\n`);
}

await main();
