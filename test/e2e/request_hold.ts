import { until } from '../setup/until.ts';
import type { Instead, ProxiedRequest, S3Proxy } from './s3_proxy.ts';

/** A place on the way to the bucket. */
export interface RequestPlace {
  /** Before the request reaches the server, while its body does, or when the server has answered it. */
  readonly when: 'before' | 'passing' | 'answered';
  readonly matches: (request: ProxiedRequest) => boolean;
}

/** A place at which requests have to wait. */
export interface RequestHold {
  /** Those that have come so far. */
  readonly held: readonly ProxiedRequest[];
  /** Resolves when one waits. */
  readonly reached: () => Promise<void>;
  /** Holds no further request back, only those that wait already. */
  readonly passOthers: () => void;
  /** Lets them go on, and those that come later; or gives them, and no later ones, an end of another kind. */
  readonly release: (instead?: Instead) => void;
}

/** Holds every request back that comes to the place. */
export function holdRequests(proxy: S3Proxy, what: string, { when, matches }: RequestPlace): RequestHold {
  const held: ProxiedRequest[] = [];
  const { promise: released, resolve } = Promise.withResolvers<Instead | undefined>();
  let open = false;
  const step = (request: ProxiedRequest): Promise<Instead | undefined> | undefined => {
    if (!held.includes(request)) {
      if (open || !matches(request)) return undefined;
      held.push(request);
    }
    return released;
  };
  const end = proxy.intervene({ [when]: step });
  return {
    held,
    reached: async () => {
      await until(() => held.length > 0, `a request comes to the place: ${what}`);
    },
    passOthers: () => {
      open = true;
    },
    release: (instead) => {
      end();
      resolve(instead);
    },
  };
}
