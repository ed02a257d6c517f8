import { DestinationError } from '../destination.ts';

/**
 * The error that is reported when a server does not support conditional writes, before the request is repeated
 * without its condition.
 */
export const conditionalWritesUnsupported = (): DestinationError =>
  new DestinationError(
    'NotImplemented',
    'The S3 server does not support conditional writes. Only the journal prevents two runs from overwriting each other.',
    { transient: false },
  );
