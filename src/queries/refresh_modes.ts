import type { AgeLimits } from './freshness.ts';

/** The values of the field `refresh`. */
export const refreshNames = [
  'blocking',
  'async',
  'lazy_async',
  'force_blocking',
  'force_async',
  'force_cache',
] as const;
export type RefreshMode = (typeof refreshNames)[number];

/** Which cached results each mode accepts, and what it does without one. */
export const refreshModes: Readonly<
  Record<
    RefreshMode,
    {
      readonly accepts: keyof AgeLimits | 'anything' | 'nothing';
      readonly otherwise: 'run' | 'start' | 'miss';
    }
  >
> = {
  blocking: { accepts: 'very_fresh', otherwise: 'run' },
  async: { accepts: 'very_fresh', otherwise: 'start' },
  lazy_async: { accepts: 'somewhat_fresh', otherwise: 'start' },
  force_blocking: { accepts: 'nothing', otherwise: 'run' },
  force_async: { accepts: 'nothing', otherwise: 'start' },
  force_cache: { accepts: 'anything', otherwise: 'miss' },
};
