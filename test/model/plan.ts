import fc from 'fast-check';

/** What a client may ask for, over HTTP. */
export const requestNames = [
  'pause',
  'unpause',
  'unpauseWithBackfill',
  'rename',
  'recut',
  'backfill',
  'pauseBackfill',
  'unpauseBackfill',
  'cancelBackfill',
  'retry',
  'cancelRun',
  'delete',
] as const;
export type RequestName = (typeof requestNames)[number];

/** One request of a client's program. Numbers pick among what is there when it is sent. */
export interface PlannedRequest {
  readonly name: RequestName;
  readonly export: number;
  readonly pick: number;
  /** Whether it is sent a second time at the same instant, with the same Idempotency-Key. */
  readonly twice: boolean;
}

/** A program for each client; they run side by side. */
export type Plan = readonly (readonly PlannedRequest[])[];

const often = (weight: number, name: RequestName) => ({ weight, arbitrary: fc.constant(name) });

const request: fc.Arbitrary<PlannedRequest> = fc.record({
  name: fc.oneof(
    often(8, 'pause'),
    often(8, 'unpause'),
    often(3, 'unpauseWithBackfill'),
    often(2, 'rename'),
    often(1, 'recut'),
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
export const plans = (clients: number, requests: number): fc.Arbitrary<Plan> =>
  fc.array(fc.array(request, { minLength: requests, maxLength: requests }), {
    minLength: clients,
    maxLength: clients,
  });
