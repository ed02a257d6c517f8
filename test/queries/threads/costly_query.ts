/** Runs a query whose result takes much memory once it is parsed, and writes how it ended. A program of its own: V8 might end it. */
import process from 'node:process';
import { createThreadExecutor } from '../../../src/queries/threads/thread_executor.ts';
import { environment, executorSettings, runTask } from './fake_environment.ts';

const [, , value = ''] = process.argv;
/** The largest result for which these threads have memory. */
const byte_limit = executorSettings.EXPORTD_QUERY_THREAD_MEMORY / 32;
const longNumber = '12345678901234567890';
const repeated = `${value},`.repeat(Math.floor(byte_limit / (value.length + 1)) - longNumber.length);
const json = `[${repeated}${longNumber}]`;
const large = environment(new AbortController().signal, (_statement, { receive }) => {
  receive([[json]], json.length);
  return Promise.resolve([{ name: 'c1', type_id: 25 }]);
});
const executor = createThreadExecutor(executorSettings);
const outcome = await executor.run({ ...runTask('select [event] from events'), byte_limit }, large).then(
  () => 'completed',
  (error: unknown) => (error as { readonly code: string }).code,
);
process.stdout.write(outcome);
await executor.close();
