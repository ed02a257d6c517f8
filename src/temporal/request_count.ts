import { AsyncLocalStorage } from 'node:async_hooks';
import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';

/** Counts requests to Temporal. */
export interface RequestCounter {
  requests: number;
}

const current = new AsyncLocalStorage<RequestCounter>();

/** Runs `work` and counts the requests to Temporal that it sends, whatever else the process sends meanwhile. */
export const withRequestCount = <Result>(counter: RequestCounter, work: () => Promise<Result>) =>
  current.run(counter, work);

/** Counts each request of a connection for the `withRequestCount` around it. Retries of a request do not count. */
export const countRequests: Interceptor = (options, nextCall) => {
  const counter = current.getStore();
  if (counter) counter.requests += 1;
  return new InterceptingCall(nextCall(options));
};
