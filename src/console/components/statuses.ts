import type { IntervalStatus } from '../../http/intervals/schema.ts';
import { html, type View } from '../html.ts';
import { isTerm, Term } from './term.ts';
import type { ConditionCause } from '../../domain/condition_causes.ts';

/** The colours that mean something; tokens.css has `--tone-…` for each. */
export type Tone = 'good' | 'running' | 'held' | 'attention' | 'danger' | 'neutral';

/** How a status looks: a colour and a shape, so that it is read without seeing colours. */
export interface StatusLook {
  readonly label: string;
  readonly tone: Tone;
  readonly shape: Shape;
}

/** Outlines in a square of 12 units. */
const shapes = {
  full: 'M0 0h12v12h-12z',
  lowerHalf: 'M0 6h12v6h-12z M0 0h12v1.5h-12z',
  bars: 'M0 0h4.5v12h-4.5z M7.5 0h4.5v12h-4.5z',
  cutCorner: 'M0 0h7l5 5v7h-12z',
  cross: 'M0 2l2-2 4 4 4-4 2 2-4 4 4 4-2 2-4-4-4 4-2-2 4-4z',
  hollow: 'M0 0h12v12h-12z M2 2v8h8v-8z',
  baseline: 'M0 9h12v3h-12z',
  middle: 'M0 4.5h12v3h-12z',
  dot: 'M4 4h4v4h-4z',
  rails: 'M0 0h12v2h-12z M0 10h12v2h-12z',
  corners: 'M0 0h4v2h-2v2h-2z M12 12h-4v-2h2v-2h2z',
} as const;
export type Shape = keyof typeof shapes;

/** The outline of a shape as the `d` of an SVG path, drawn with `fill-rule="evenodd"`. */
export const shapePath = (shape: Shape): string => shapes[shape];

/** What an interval is shown as: by its status, or as one that nothing has exported and nothing will. */
export type IntervalLook = IntervalStatus | 'missing';

/** How each of them looks. */
export const intervalLooks: Readonly<Record<IntervalLook, StatusLook>> = {
  exported: { label: 'Exported', tone: 'good', shape: 'full' },
  running: { label: 'Running', tone: 'running', shape: 'lowerHalf' },
  held: { label: 'Held', tone: 'held', shape: 'bars' },
  unsettled: { label: 'Unsettled', tone: 'attention', shape: 'cutCorner' },
  failed: { label: 'Failed', tone: 'danger', shape: 'cross' },
  gap: { label: 'Gap', tone: 'danger', shape: 'hollow' },
  due: { label: 'Due', tone: 'neutral', shape: 'baseline' },
  paused: { label: 'Paused', tone: 'neutral', shape: 'middle' },
  excluded: { label: 'Excluded', tone: 'neutral', shape: 'dot' },
  expired: { label: 'Expired', tone: 'neutral', shape: 'corners' },
  missing: { label: 'Not exported', tone: 'attention', shape: 'rails' },
};

/** How each cause of an export's condition looks. */
export const conditionLooks: Readonly<Record<ConditionCause, StatusLook>> = {
  unreadable: { label: 'Unreadable', tone: 'danger', shape: 'cross' },
  temporal_unavailable: { label: 'Temporal down', tone: 'danger', shape: 'cross' },
  no_worker: { label: 'No worker', tone: 'danger', shape: 'cross' },
  source_unavailable: { label: 'Source unavailable', tone: 'danger', shape: 'cross' },
  operator_fault: { label: 'Waits for operator', tone: 'danger', shape: 'cross' },
  destination_unavailable: { label: 'Bucket unavailable', tone: 'danger', shape: 'cross' },
  paused_by_failures: { label: 'Paused by failures', tone: 'danger', shape: 'middle' },
  access_denied: { label: 'Access denied', tone: 'danger', shape: 'cross' },
  table_changed: { label: 'Table changed', tone: 'danger', shape: 'cross' },
  failed: { label: 'Failed', tone: 'danger', shape: 'cross' },
  held: { label: 'Held', tone: 'held', shape: 'bars' },
  differs: { label: 'Differs', tone: 'danger', shape: 'cross' },
  not_started: { label: 'Not started', tone: 'danger', shape: 'hollow' },
  retrying: { label: 'Retrying', tone: 'attention', shape: 'cross' },
  behind_capacity: { label: 'Behind: capacity', tone: 'attention', shape: 'cutCorner' },
  behind: { label: 'Behind', tone: 'attention', shape: 'cutCorner' },
  holes: { label: 'Holes', tone: 'attention', shape: 'rails' },
  unsettled: { label: 'Unsettled', tone: 'attention', shape: 'cutCorner' },
  paused: { label: 'Paused', tone: 'neutral', shape: 'middle' },
  ok: { label: 'Active', tone: 'good', shape: 'full' },
};

/** How the statuses of runs, backfills and deliveries look. */
const otherLooks: Readonly<Record<string, StatusLook>> = {
  // Runs
  Starting: { label: 'Starting', tone: 'running', shape: 'baseline' },
  Running: { label: 'Running', tone: 'running', shape: 'lowerHalf' },
  Completed: { label: 'Completed', tone: 'good', shape: 'full' },
  ContinuedAsNew: { label: 'Continued as new', tone: 'neutral', shape: 'middle' },
  Failed: { label: 'Failed', tone: 'danger', shape: 'cross' },
  FailedRetryable: { label: 'Failed, retryable', tone: 'attention', shape: 'cross' },
  Cancelled: { label: 'Cancelled', tone: 'neutral', shape: 'hollow' },
  Terminated: { label: 'Terminated', tone: 'danger', shape: 'hollow' },
  TimedOut: { label: 'Timed out', tone: 'attention', shape: 'hollow' },
  Incomplete: { label: 'Incomplete', tone: 'danger', shape: 'cross' },
  // Backfills
  Paused: { label: 'Paused', tone: 'neutral', shape: 'middle' },
  // Steps of a destination test
  Passed: { label: 'Passed', tone: 'good', shape: 'full' },
  Skipped: { label: 'Skipped', tone: 'neutral', shape: 'hollow' },
  // Deliveries and verifications
  pending: { label: 'Pending', tone: 'running', shape: 'lowerHalf' },
  delivered: { label: 'Delivered', tone: 'good', shape: 'full' },
  verified: { label: 'No findings', tone: 'good', shape: 'full' },
  findings: { label: 'Findings', tone: 'danger', shape: 'cross' },
  dropped: { label: 'Dropped', tone: 'attention', shape: 'hollow' },
  // API keys, users and events of the audit trail
  active: { label: 'Active', tone: 'good', shape: 'full' },
  revoked: { label: 'Revoked', tone: 'neutral', shape: 'cross' },
  disabled: { label: 'Disabled', tone: 'neutral', shape: 'hollow' },
  done: { label: 'Done', tone: 'good', shape: 'full' },
  accepted: { label: 'Accepted', tone: 'running', shape: 'lowerHalf' },
};

/** How a status looks; one that this version does not know is shown by its name. */
const lookOf = (status: string): StatusLook =>
  (intervalLooks as Partial<Record<string, StatusLook>>)[status] ??
  otherLooks[status] ?? { label: status, tone: 'neutral', shape: 'dot' };

/** The statuses of the letters that lists of intervals are sent as (`intervalLetters` of the server). */
const statusesByLetter: Readonly<Record<string, IntervalLook>> = {
  e: 'exported',
  r: 'running',
  h: 'held',
  u: 'unsettled',
  f: 'failed',
  g: 'gap',
  d: 'due',
  p: 'paused',
  x: 'excluded',
  o: 'expired',
  m: 'missing',
};

/** The status of a letter. */
export const statusOfLetter = (letter: string): IntervalLook => statusesByLetter[letter] ?? 'excluded';

/** The sign of a status: its shape in its colour. The text beside it names it. */
export function StatusSign({ look }: { readonly look: StatusLook }): View {
  return html`<svg class="status-sign tone-${look.tone}" viewBox="0 0 12 12" aria-hidden="true">
    <path fill-rule="evenodd" d=${shapePath(look.shape)} />
  </svg>`;
}

/** The shape of an interval, as wide and high as its cell. Its tone is the cell's. */
export function CellShape({ status }: { readonly status: IntervalLook }): View {
  return html`<svg viewBox="0 0 12 12" preserveAspectRatio="none" aria-hidden="true">
    <path fill-rule="evenodd" d=${shapePath(intervalLooks[status].shape)} />
  </svg>`;
}

interface BadgeProps {
  /** Whether the word explains itself. It is a button then, which a link cannot contain. */
  readonly isExplained?: boolean;
}

/** A look as sign and text. */
function Badge({ look, isExplained = false }: BadgeProps & { readonly look: StatusLook }): View {
  const { label } = look;
  return html`<span class="status-badge tone-${look.tone}"
    ><${StatusSign}
      look=${look}
    />${isExplained && isTerm(label) ? html`<${Term} name=${label} />` : label}</span
  >`;
}

/** A status as sign and text. */
export function StatusBadge({ status, isExplained }: BadgeProps & { readonly status: string }): View {
  return html`<${Badge} look=${lookOf(status)} isExplained=${isExplained} />`;
}

/** The condition of an export as sign and text. */
export function ConditionBadge({
  cause,
  isExplained,
}: BadgeProps & { readonly cause: ConditionCause }): View {
  return html`<${Badge} look=${conditionLooks[cause]} isExplained=${isExplained} />`;
}
