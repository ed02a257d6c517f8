import { useId } from 'preact/hooks';
import { timezone } from '../../api/client.ts';
import { Button } from '../../components/actions.ts';
import { SelectField, TextField } from '../../components/field.ts';
import type { CompletionSource } from '../../editor/completion.ts';
import { html, type View } from '../../html.ts';
import {
  displays,
  emptyFilter,
  emptySeries,
  type FilterForm,
  type InsightForm,
  intervals,
  maths,
  operators,
  ranges,
  type SeriesForm,
  windowUnits,
} from './insight_form.ts';

type Names = CompletionSource['names'];

interface BuilderProps {
  readonly form: InsightForm;
  /** What the project has; null until it is read. */
  readonly names: Names;
  readonly onChange: (form: InsightForm) => void;
}

const optionsOf = (choices: Readonly<Record<string, string>>) =>
  Object.entries(choices).map(([value, label]) => ({ value, label }));
const labelsOf = <Choice extends { readonly label: string }>(choices: Readonly<Record<string, Choice>>) =>
  optionsOf(Object.fromEntries(Object.entries(choices).map(([value, { label }]) => [value, label])));
const namedBy = (names: readonly string[]) => names.map((name) => ({ value: name, label: name }));

const owners = [
  { value: 'event', label: 'event' },
  { value: 'person', label: 'person' },
];

/** Builds a trend or a funnel. It shows all of the query, so that form and JSON are two views of one thing. */
export function InsightBuilder({ form, names, onChange }: BuilderProps): View {
  const isFunnel = form.kind === 'FunnelsQuery';
  const change = (part: Partial<InsightForm>) => onChange({ ...form, ...part });
  const setSeries = (index: number, part: Partial<SeriesForm>) =>
    change({ series: form.series.map((one, at) => (at === index ? { ...one, ...part } : one)) });
  const least = isFunnel ? 2 : 1;
  const what = isFunnel ? 'Step' : 'Series';
  return html`<div class="insight-builder">
    ${form.series.map(
      (one, index) =>
        html`<fieldset key=${index} class="insight-part">
          <legend>${what} ${index + 1}</legend>
          <div class="insight-row">
            <${NameField}
              label="Event"
              value=${one.event}
              names=${names?.events}
              placeholder="all events"
              onInput=${(event: string) => setSeries(index, { event })}
            />
            ${
              !isFunnel &&
              html`<${SelectField}
                label="Count"
                value=${one.math}
                options=${labelsOf(maths)}
                onChange=${(math: string) => setSeries(index, { math })}
              />`
            }
            ${
              !isFunnel &&
              maths[one.math]?.isOfProperty &&
              html`<${NameField}
                label="Property"
                value=${one.mathProperty}
                names=${names?.event_properties}
                onInput=${(mathProperty: string) => setSeries(index, { mathProperty })}
              />`
            }
            <span class="insight-actions">
              <${Button}
                kind="quiet"
                onClick=${() => setSeries(index, { filters: [...one.filters, emptyFilter] })}
                >Filter<//
              >
              ${
                form.series.length > least &&
                html`<${Button}
                  kind="quiet"
                  label="Remove ${what.toLowerCase()} ${index + 1}"
                  onClick=${() => change({ series: form.series.filter((_, at) => at !== index) })}
                  >×<//
                >`
              }
            </span>
          </div>
          <${Filters}
            filters=${one.filters}
            names=${names}
            onChange=${(filters: readonly FilterForm[]) => setSeries(index, { filters })}
          />
        </fieldset>`,
    )}
    <div class="page-actions">
      <${Button} onClick=${() => change({ series: [...form.series, emptySeries] })}
        >Add ${what.toLowerCase()}<//
      >
      <${Button} onClick=${() => change({ filters: [...form.filters, emptyFilter] })}>Filter all<//>
    </div>
    ${
      form.filters.length > 0 &&
      html`<fieldset class="insight-part">
        <legend>Only events where</legend>
        <${Filters}
          filters=${form.filters}
          names=${names}
          onChange=${(filters: readonly FilterForm[]) => change({ filters })}
        />
      </fieldset>`
    }
    <div class="insight-row">
      <${DateRange} form=${form} change=${change} />
      ${
        isFunnel
          ? html`<${TextField}
                label="Window"
                type="number"
                value=${form.windowLength}
                onInput=${(windowLength: string) => change({ windowLength })}
              />
              <${SelectField}
                label="Unit of the window"
                value=${form.windowUnit}
                options=${namedBy(windowUnits)}
                onChange=${(windowUnit: string) => change({ windowUnit })}
              />`
          : html`<${SelectField}
                label="By"
                value=${form.interval}
                options=${namedBy(intervals)}
                onChange=${(interval: string) => change({ interval })}
              />
              <${SelectField}
                label="Show"
                value=${form.display}
                options=${optionsOf(displays)}
                onChange=${(display: string) => change({ display })}
              />`
      }
      <${NameField}
        label="Break down by"
        value=${form.breakdown.property}
        names=${form.breakdown.owner === 'event' ? names?.event_properties : names?.person_properties}
        placeholder="nothing"
        onInput=${(property: string) => change({ breakdown: { ...form.breakdown, property } })}
      />
      ${
        form.breakdown.property !== '' &&
        html`<${SelectField}
          label="Property of"
          value=${form.breakdown.owner}
          options=${owners}
          onChange=${(owner: FilterForm['owner']) => change({ breakdown: { ...form.breakdown, owner } })}
        />`
      }
    </div>
  </div>`;
}

/** A name that the project may have, which the browser completes. */
function NameField({
  label,
  value,
  names = [],
  placeholder,
  onInput,
}: {
  readonly label: string;
  readonly value: string;
  readonly names?: readonly string[];
  readonly placeholder?: string;
  readonly onInput: (value: string) => void;
}): View {
  const list = useId();
  return html`<${TextField}
      label=${label}
      value=${value}
      placeholder=${placeholder}
      list=${list}
      onInput=${onInput}
    />
    <datalist id=${list}>${names.map((name) => html`<option key=${name} value=${name} />`)}</datalist>`;
}

const isDate = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text);

/** A range that ends now, or two dates. */
function DateRange({
  form: { dateFrom, dateTo },
  change,
}: {
  readonly form: InsightForm;
  readonly change: (part: Partial<InsightForm>) => void;
}): View {
  const isFixed = isDate(dateFrom) || dateTo !== '';
  const known = isFixed || dateFrom in ranges ? [] : [{ value: dateFrom, label: dateFrom }];
  const today = new Date().toLocaleDateString('en-CA', { timeZone: timezone.value });
  return html`<${SelectField}
      label="Time"
      value=${isFixed ? 'fixed' : dateFrom}
      options=${[...optionsOf(ranges), ...known, { value: 'fixed', label: 'from … to …' }]}
      onChange=${(range: string) => change(range === 'fixed' ? { dateFrom: today, dateTo: today } : { dateFrom: range, dateTo: '' })}
    />
    ${
      isFixed &&
      html`<${TextField}
          label="From"
          type="date"
          value=${isDate(dateFrom) ? dateFrom : ''}
          onInput=${(from: string) => from !== '' && change({ dateFrom: from })}
        />
        <${TextField}
          label="To"
          type="date"
          value=${dateTo}
          onInput=${(to: string) => change({ dateTo: to })}
        />`
    }`;
}

/** Filters of properties, all of which must match. */
function Filters({
  filters,
  names,
  onChange,
}: {
  readonly filters: readonly FilterForm[];
  readonly names: Names;
  readonly onChange: (filters: readonly FilterForm[]) => void;
}): View {
  const set = (index: number, part: Partial<FilterForm>) =>
    onChange(filters.map((one, at) => (at === index ? { ...one, ...part } : one)));
  if (filters.length === 0) return null;
  return html`<div class="insight-filters">
    ${filters.map(
      (one, index) =>
        html`<div class="insight-row" key=${index}>
          <${SelectField}
            label="Property of"
            value=${one.owner}
            options=${owners}
            onChange=${(owner: FilterForm['owner']) => set(index, { owner })}
          />
          <${NameField}
            label="Property"
            value=${one.key}
            names=${one.owner === 'event' ? names?.event_properties : names?.person_properties}
            onInput=${(key: string) => set(index, { key })}
          />
          <${SelectField}
            label="Condition"
            value=${one.operator}
            options=${labelsOf(operators)}
            onChange=${(operator: string) => set(index, { operator })}
          />
          ${
            operators[one.operator]?.hasValue &&
            html`<${TextField}
              label="Value"
              value=${one.value}
              onInput=${(value: string) => set(index, { value })}
            />`
          }
          <span class="insight-actions">
            <${Button}
              kind="quiet"
              label="Remove filter ${index + 1}"
              onClick=${() => onChange(filters.filter((_, at) => at !== index))}
              >×<//
            >
          </span>
        </div>`,
    )}
  </div>`;
}
