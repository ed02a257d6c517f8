import type { S3Proxy } from './s3_proxy.ts';

/** An outage that begins once a part has arrived. */
export interface Outage {
  readonly isThere: () => boolean;
  readonly end: () => void;
}

/** Takes the server away, for requests to keys that begin so, as soon as it has answered the first part below them. */
export function outageAfterFirstPart(proxy: S3Proxy, prefix = ''): Outage {
  let outage: 'to come' | 'there' | 'over' = 'to come';
  proxy.intervene({
    before: (request) => {
      if (outage === 'over' || !request.key.startsWith(prefix)) return undefined;
      const parts = proxy.requests.filter(
        ({ operation, key }) => operation === 'UploadPart' && key.startsWith(prefix),
      );
      if (parts.some(({ status, ended }) => status === 200 && ended)) outage = 'there';
      // Parts are sent side by side: were others let through, too few would be left for the outage to meet.
      const isSecond = parts.includes(request) && parts.some((part) => part !== request && !part.ended);
      return outage === 'there' || isSecond ? 'broken' : undefined;
    },
  });
  return {
    isThere: () => outage === 'there',
    end: () => {
      outage = 'over';
    },
  };
}
