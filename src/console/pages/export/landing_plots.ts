import { useMemo } from 'preact/hooks';
import { Plot } from '../../components/plot.ts';
import { html, type View } from '../../html.ts';
import { navigate } from '../../router/location.ts';
import { paths } from '../../router/paths.ts';
import type { TimelineEntry } from './calendar_layout.ts';

/** How long after its end each interval landed in the bucket, and how many rows it has. A click opens the interval. */
export function LandingPlots({
  exportId,
  entries,
}: {
  readonly exportId: string;
  readonly entries: readonly TimelineEntry[];
}): View {
  const landed = useMemo(() => entries.filter(({ landed_at }) => landed_at !== null), [entries]);
  const times = useMemo(
    () => landed.map(({ data_interval_end }) => Date.parse(data_interval_end) / 1_000),
    [landed],
  );
  const delays = useMemo(
    () => [{ label: 'After its end', kind: 'points' as const, values: landed.map(delayOf) }],
    [landed],
  );
  const rows = useMemo(
    () => [{ label: 'Rows', kind: 'bars' as const, values: landed.map((entry) => entry.rows) }],
    [landed],
  );
  if (landed.length < 2) return null;
  const open = (index: number) => {
    const entry = landed[index];
    if (entry) navigate(paths.interval(exportId, entry.data_interval_start));
  };
  return html`<div class="side-by-side">
    <${Plot}
      label="Landing time after the end of the interval"
      unit="seconds"
      times=${times}
      series=${delays}
      onSelect=${open}
    />
    <${Plot} label="Rows of each interval" unit="count" times=${times} series=${rows} onSelect=${open} />
  </div>`;
}

/** Seconds from the end of an interval to its first manifest. */
const delayOf = ({ landed_at, data_interval_end }: TimelineEntry): number | null =>
  landed_at === null ? null : (Date.parse(landed_at) - Date.parse(data_interval_end)) / 1_000;
