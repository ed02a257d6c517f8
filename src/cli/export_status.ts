import type { JsonObject } from './commands/service_command.ts';
import type { Lag } from './lag_lines.ts';
import { formatDuration } from './format_duration.ts';

/** Why a batch export needs attention, the most urgent first. */
const attentions = ['gaps', 'failing', 'behind', 'unknown', 'paused', 'ok'] as const;
type Attention = (typeof attentions)[number];

const failedStatuses: ReadonlySet<unknown> = new Set(['Failed', 'FailedRetryable', 'TimedOut', 'Terminated']);

interface ExportState {
  readonly lag: Lag | null;
  readonly latest_runs: readonly { readonly status: string; readonly latest_error: string | null }[];
  readonly paused: boolean;
}

// The form of a batch export in the API.
const stateOf = (batchExport: JsonObject): ExportState => batchExport as unknown as ExportState;

/** Whether a batch export needs a person: gaps, failures, lag, or a pause. */
export function attentionOf(batchExport: JsonObject): Attention {
  const { lag, latest_runs, paused } = stateOf(batchExport);
  if (lag !== null && lag.gaps.length > 0) return 'gaps';
  if (failedStatuses.has(latest_runs[0]?.status)) return 'failing';
  // The newest interval is being exported.
  if (lag !== null && lag.intervals > 1) return 'behind';
  if (paused) return 'paused';
  return lag === null ? 'unknown' : 'ok';
}

/** The cells of each batch export, in the order of attention. */
export const statusRows = (exports: readonly JsonObject[]): unknown[][] =>
  exports
    .map((one) => ({ one, attention: attentionOf(one) }))
    .toSorted((first, second) => attentions.indexOf(first.attention) - attentions.indexOf(second.attention))
    .map(({ one, attention }) => {
      const { lag } = stateOf(one);
      return [
        attention,
        one.id,
        one.name,
        one.model,
        one.interval,
        lag && (lag.intervals === 0 ? 'none' : formatDuration(lag.seconds)),
        lag?.last_completed_interval_end,
        detailOf(stateOf(one), attention),
      ];
    });

const gapCount = (lag: Lag | null): string => {
  const gaps = lag?.gaps.length ?? 0;
  return gaps === 1 ? '1 interval needs' : `${gaps} intervals need`;
};

function detailOf({ lag, latest_runs }: ExportState, attention: Attention): string | null {
  switch (attention) {
    case 'gaps':
      return `${gapCount(lag)} a retry: "exportd export show" lists them`;
    case 'failing':
      return latest_runs[0]?.latest_error ?? null;
    case 'behind':
      return `${lag?.intervals ?? 0} intervals are not exported yet`;
    default:
      return null;
  }
}
