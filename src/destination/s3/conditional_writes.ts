import { DestinationError } from '../destination.ts';
import type { StoreTraits } from '../store_traits.ts';
import type { S3Requests } from './requests.ts';

/**
 * Reports that a server does not support conditional writes, and stores that, before the request is repeated without its
 * condition.
 */
export async function reportUnconditionalWrites(
  requests: Pick<S3Requests, 'report' | 'learn'>,
  found: Pick<Partial<StoreTraits>, 'conditional_put' | 'conditional_complete'>,
): Promise<void> {
  requests.report(
    new DestinationError(
      'NotImplemented',
      'The S3 server does not support conditional writes. Only the journal prevents two runs from overwriting each other.',
      { transient: false },
    ),
  );
  await requests.learn(found);
}
