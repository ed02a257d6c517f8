/** Runs a query whose thread needs too much memory, and writes how it failed. A program of its own: V8 might end it. */
import process from 'node:process';
import { createThreadExecutor } from '../../../src/queries/threads/thread_executor.ts';
import { environment, executorSettings, runTask } from './fake_environment.ts';

const executor = createThreadExecutor(executorSettings, new URL('greedy_thread.ts', import.meta.url));
const none = environment(new AbortController().signal, () =>
  Promise.reject(new Error('No statement is expected.')),
);
const outcome = await executor.run(runTask('select 1'), none).catch((error: unknown) => error);
const { code, message } = outcome as { readonly code?: string; readonly message?: string };
process.stdout.write(JSON.stringify({ code, message }));
await executor.close();
