import { html, type View } from '../html.ts';

const height = 20;
const barWidth = 4;
const barGap = 1;

/** Values over time as small bars, the newest at the right. `label` says what they are, and their sum. */
export function Sparkline({
  values,
  label,
}: {
  readonly values: readonly number[];
  readonly label: string;
}): View {
  const max = Math.max(...values, 1);
  const width = values.length * (barWidth + barGap);
  const bars = values.map((value, index) => {
    // A bar of what is not zero is never invisible.
    const size = value === 0 ? 0.5 : Math.max(1.5, (value / max) * height);
    const top = (height - size).toFixed(1);
    return `M${index * (barWidth + barGap)} ${top}h${barWidth}v${size.toFixed(1)}h-${barWidth}z`;
  });
  return html`<svg
    class="sparkline"
    role="img"
    aria-label=${label}
    viewBox="0 0 ${width} ${height}"
    width=${width}
    height=${height}
  >
    <title>${label}</title>
    <path d=${bars.join('')} />
  </svg>`;
}
