import type { RunStepsResponse } from '../../http/console/schema.ts';
import type { LogLineResponse } from '../../http/intervals/schema.ts';
import type { ListOf } from '../api/client.ts';
import { useResource } from '../api/resource.ts';
import { timezone } from '../api/session.ts';
import { formatMoment } from '../formatting/moment.ts';
import { html, type View } from '../html.ts';
import { EmptyState } from './empty_state.ts';
import { Loaded } from './loaded.ts';
import { Plot } from './plot.ts';

/** What a run did, step by step, beside its lines of the log. */
export function RunSteps({ exportId, runId }: { readonly exportId: string; readonly runId: string }): View {
  const steps = useResource<RunStepsResponse>(`console/batch_exports/${exportId}/runs/${runId}/steps/`, {
    live: exportId,
  });
  const lines = useResource<ListOf<LogLineResponse>>(`batch_exports/${exportId}/logs/`, {
    query: { run_id: runId, limit: 200 },
    live: exportId,
  });
  return html`<div class="run-detail">
    <${Loaded} resource=${steps}>${(found: RunStepsResponse) => html`<${Throughput} steps=${found} />`}<//>
    <div class="side-by-side">
      <section>
        <h3>Steps</h3>
        <${Loaded} resource=${steps}>${(found: RunStepsResponse) => html`<${StepList} steps=${found} />`}<//>
      </section>
      <section>
        <h3>Log</h3>
        <${Loaded} resource=${lines}>
          ${(found: ListOf<LogLineResponse>) =>
            html`<${LogLines}
              lines=${found.results}
              empty="The run has logged nothing."
              timeOf=${timeOfDay}
            />`}
        <//>
      </section>
    </div>
  </div>`;
}

function Throughput({ steps: { throughput } }: { readonly steps: RunStepsResponse }): View {
  // One bin says nothing about time.
  if (throughput.length < 3) return null;
  return html`<${Plot}
    label="Rows per second"
    unit="count"
    height=${140}
    times=${throughput.map(({ at }) => Date.parse(at) / 1_000)}
    series=${[{ label: 'Rows/s', kind: 'bars', values: throughput.map(({ rows, seconds }) => rows / seconds) }]}
  />`;
}

function StepList({ steps }: { readonly steps: RunStepsResponse }): View {
  return html`<ol class="steps">
      ${steps.steps.map(
        (step, index) =>
          html`<li key=${index} class="step-${step.level}">
            <time class="figures" datetime=${step.at}>${timeOfDay(step.at)}</time>
            <div>
              <p>
                ${step.summary}
                ${step.range !== null && step.range > 0 && html`<span class="muted"> (range ${step.range + 1})</span>`}
              </p>
              ${step.detail !== null && html`<p class="muted step-detail">${step.detail}</p>`}
            </div>
          </li>`,
      )}
    </ol>
    ${!steps.is_complete && html`<p class="muted">Later steps are not listed.</p>`}`;
}

/** Lines of the log of an export, newest first. */
export function LogLines({
  lines,
  empty,
  timeOf = dateAndTime,
}: {
  readonly lines: readonly LogLineResponse[];
  readonly empty: string;
  readonly timeOf?: (at: string) => string;
}): View {
  if (lines.length === 0) return html`<${EmptyState} title=${empty} />`;
  return html`<ol class="steps log-lines">
    ${lines.map(
      (line, index) =>
        html`<li key=${index} class="step-${line.level.toLowerCase()}">
          <time class="figures" datetime=${line.timestamp}>${timeOf(line.timestamp)}</time>
          <p><span class="log-level">${line.level}</span> ${line.message}</p>
        </li>`,
    )}
  </ol>`;
}

const dateAndTime = (at: string): string => formatMoment(at, timezone.value);

/** `14:05:09`: a run rarely takes longer than a day. */
const timeOfDay = (at: string): string => formatMoment(at, timezone.value).slice(11);
