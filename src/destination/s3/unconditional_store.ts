import { DestinationError } from '../destination.ts';

/** What is told when a server refuses a conditional write and the request is repeated without its condition. */
export const unconditionalStore = (): DestinationError =>
  new DestinationError(
    'NotImplemented',
    'The S3 server knows no conditional writes, so the journal alone keeps two runs of an interval apart.',
    { transient: false },
  );
