/** What can be wrong with an export, and how much it matters. */
import type { ErrorOwner } from './errors.ts';

/** How urgent a condition is. `ok` needs no action. */
export const conditionSeverities = ['error', 'warning', 'ok'] as const;
export type ConditionSeverity = (typeof conditionSeverities)[number];

export interface CauseTraits {
  readonly severity: ConditionSeverity;
  readonly owner: ErrorOwner;
}

/** The causes of a condition, the most urgent first: of several that hold, an export has the first. */
export const causes = {
  unreadable: { severity: 'error', owner: 'operator' },
  temporal_unavailable: { severity: 'error', owner: 'operator' },
  no_worker: { severity: 'error', owner: 'operator' },
  source_unavailable: { severity: 'error', owner: 'operator' },
  operator_fault: { severity: 'error', owner: 'operator' },
  destination_unavailable: { severity: 'error', owner: 'tenant' },
  paused_by_failures: { severity: 'error', owner: 'tenant' },
  access_denied: { severity: 'error', owner: 'tenant' },
  table_changed: { severity: 'error', owner: 'tenant' },
  failed: { severity: 'error', owner: 'tenant' },
  held: { severity: 'error', owner: 'tenant' },
  differs: { severity: 'error', owner: 'tenant' },
  not_started: { severity: 'error', owner: 'operator' },
  retrying: { severity: 'warning', owner: 'none' },
  behind_capacity: { severity: 'warning', owner: 'operator' },
  behind: { severity: 'warning', owner: 'none' },
  holes: { severity: 'warning', owner: 'tenant' },
  unsettled: { severity: 'warning', owner: 'operator' },
  paused: { severity: 'ok', owner: 'tenant' },
  ok: { severity: 'ok', owner: 'none' },
} as const satisfies Readonly<Record<string, CauseTraits>>;

/** Why an export is in its condition: a stable code. */
export type ConditionCause = keyof typeof causes;
export const conditionCauses = Object.keys(causes) as readonly ConditionCause[];
