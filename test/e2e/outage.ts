import type { S3Proxy } from './s3_proxy.ts';

/** An outage that starts once a part has arrived. */
interface Outage {
  readonly isActive: () => boolean;
  readonly end: () => void;
}

/** Breaks connections for keys with the prefix, from the response to the first part below it until the outage ends. */
export function outageAfterFirstPart(proxy: S3Proxy, prefix = ''): Outage {
  let outage: 'pending' | 'active' | 'over' = 'pending';
  proxy.intercept({
    before: (request) => {
      if (outage === 'over' || !request.key.startsWith(prefix)) return undefined;
      const parts = proxy.requests.filter(
        ({ operation, key }) => operation === 'UploadPart' && key.startsWith(prefix),
      );
      if (parts.some(({ status, ended }) => status === 200 && ended)) outage = 'active';
      // Parts are sent concurrently: if others passed, too few would be left for the outage.
      const isSecond = parts.includes(request) && parts.some((part) => part !== request && !part.ended);
      return outage === 'active' || isSecond ? 'broken' : undefined;
    },
  });
  return {
    isActive: () => outage === 'active',
    end: () => {
      outage = 'over';
    },
  };
}
