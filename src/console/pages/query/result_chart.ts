import { Plot } from '../../components/plot.ts';
import { html, type View } from '../../html.ts';
import type { Chart } from './query_result.ts';

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

/** A result as lines over time, or as bars. */
export function ResultChart({ chart }: { readonly chart: Chart }): View {
  if (chart.kind === 'times')
    return html`<${Plot}
      label=${chart.series.map(({ label }) => label).join(', ')}
      times=${chart.times}
      series=${chart.series}
      unit="count"
      height=${280}
    />`;
  const largest = Math.max(...chart.bars.map(({ value }) => Math.abs(value)), 1);
  return html`<figure class="bar-chart card">
    <figcaption>${chart.label}</figcaption>
    <dl>
      ${chart.bars.map(
        ({ name, value }, index) =>
          html`<div class="bar-row" key=${index}>
            <dt title=${name}>${name}</dt>
            <dd>
              <span class="bar" style=${{ '--share': Math.abs(value) / largest }} aria-hidden="true"></span>
              <span class="figures">${numbers.format(value)}</span>
            </dd>
          </div>`,
      )}
    </dl>
  </figure>`;
}
