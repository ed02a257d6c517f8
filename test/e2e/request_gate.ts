import { waitFor } from '../setup/wait_for.ts';
import type { InjectedOutcome, ProxiedRequest, S3Proxy } from './s3_proxy.ts';

/** Where requests to the bucket are blocked. */
export interface GatePosition {
  /** Before the request reaches the server, during its body, or after the server responded. */
  readonly when: 'before' | 'during' | 'after';
  readonly matches: (request: ProxiedRequest) => boolean;
}

/** A gate that requests wait at until the test opens it. */
export interface RequestGate {
  /** The requests that reached the gate. */
  readonly waiting: readonly ProxiedRequest[];
  /** Resolves when a request is waiting. */
  readonly reached: () => Promise<void>;
  /** Lets later requests pass; those waiting keep waiting. */
  readonly letOthersPass: () => void;
  /** Lets waiting and later requests pass. With an outcome, waiting requests end with that instead. */
  readonly open: (outcome?: InjectedOutcome) => void;
}

/** Blocks every request that reaches the position. */
export function blockRequests(proxy: S3Proxy, what: string, { when, matches }: GatePosition): RequestGate {
  const waiting: ProxiedRequest[] = [];
  const { promise: opened, resolve } = Promise.withResolvers<InjectedOutcome | undefined>();
  let isOpen = false;
  const step = (request: ProxiedRequest): Promise<InjectedOutcome | undefined> | undefined => {
    if (!waiting.includes(request)) {
      if (isOpen || !matches(request)) return undefined;
      waiting.push(request);
    }
    return opened;
  };
  const removeInterceptor = proxy.intercept({ [when]: step });
  return {
    waiting,
    reached: async () => {
      await waitFor(() => waiting.length > 0, `a request reaches the gate: ${what}`);
    },
    letOthersPass: () => {
      isOpen = true;
    },
    open: (outcome) => {
      removeInterceptor();
      resolve(outcome);
    },
  };
}
