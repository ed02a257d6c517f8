import fc from 'fast-check';

/** The HTTP requests that a client can send. */
const requestNames = [
  'pause',
  'unpause',
  'unpauseWithBackfill',
  'rename',
  'changeInterval',
  'backfill',
  'pauseBackfill',
  'unpauseBackfill',
  'cancelBackfill',
  'retry',
  'cancelRun',
  'delete',
] as const;
export type RequestName = (typeof requestNames)[number];

/** A request of a client's program. Numbers pick among what exists when it is sent. */
export interface PlannedRequest {
  readonly name: RequestName;
  readonly export: number;
  readonly pick: number;
  /** Whether it is sent twice at the same time, with the same Idempotency-Key. */
  readonly twice: boolean;
}

/** A program per client; they run concurrently. */
export type Plan = readonly (readonly PlannedRequest[])[];

const often = (weight: number, name: RequestName) => ({ weight, arbitrary: fc.constant(name) });

const request: fc.Arbitrary<PlannedRequest> = fc.record({
  name: fc.oneof(
    often(8, 'pause'),
    often(8, 'unpause'),
    often(3, 'unpauseWithBackfill'),
    often(2, 'rename'),
    often(1, 'changeInterval'),
    often(6, 'backfill'),
    often(2, 'pauseBackfill'),
    often(2, 'unpauseBackfill'),
    often(3, 'cancelBackfill'),
    often(4, 'retry'),
    often(5, 'cancelRun'),
    often(1, 'delete'),
  ),
  export: fc.nat(),
  pick: fc.nat(),
  twice: fc.boolean(),
});

/** Programs of random requests. */
export const plans = (clientCount: number, requests: number): fc.Arbitrary<Plan> =>
  fc.array(fc.array(request, { minLength: requests, maxLength: requests }), {
    minLength: clientCount,
    maxLength: clientCount,
  });
