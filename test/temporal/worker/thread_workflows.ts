import { ApplicationFailure, defineQuery, setHandler, sleep } from '@temporalio/workflow';

// Workflows that show how their thread runs them.

/** Whether promises are followed by a hook, which leaves the id of the execution on each. */
export async function followsPromises(): Promise<boolean> {
  const promise = sleep(1);
  await promise;
  return 'runId' in promise;
}

/** Computes until it is interrupted. */
export async function neverYields(): Promise<void> {
  await sleep(1);
  for (;;) Math.sqrt(2);
}

/** Never ends, and answers a query. */
export async function waits(): Promise<void> {
  setHandler(defineQuery<string>('answer'), () => 'answered');
  await sleep(1);
  await waitBelow();
}

async function waitBelow(): Promise<void> {
  await Promise.all([sleep('1 day'), sleep('2 days')]);
}

/** Fails below another function. */
export function fails(): Promise<never> {
  return failBelow();
}

async function failBelow(): Promise<never> {
  await sleep(1);
  throw ApplicationFailure.nonRetryable('It failed.', 'Expected');
}
