import { useId } from 'preact/hooks';
import { Button } from '../../components/actions.ts';
import { Field, type ControlProps } from '../../components/field.ts';
import type { CompletionSource } from '../../editor/completion.ts';
import { DialectEditor } from '../../editor/dialect_editor.ts';
import { errorRangeOf, summaryOfError } from '../../editor/marked_text.ts';
import { html, type View } from '../../html.ts';
import {
  fields,
  filterOperators,
  filterTypes,
  hasOperator,
  hasValue,
  inWords,
  labelOfChoice,
  textOf,
  type FilterRow,
  type FormField,
  type Input,
  type Inputs,
} from './form_fields.ts';

/** Sections that few exports need are closed until one of their fields is wrong. */
const closedSections: ReadonlySet<string> = new Set(['Schedule', 'More']);

/** The fields of the form, in their sections. */
export function FormSections({
  inputs,
  errors,
  source,
  storedSecret,
  onInput,
}: {
  readonly inputs: Inputs;
  readonly errors: Readonly<Record<string, string>>;
  readonly source: CompletionSource | null;
  /** What is stored of a secret, which is kept when none is entered; undefined if nothing is. */
  readonly storedSecret: (field: FormField) => string | undefined;
  readonly onInput: (field: FormField, input: Input) => void;
}): View {
  return html`${[...Map.groupBy(fields.filter(isChoice), ({ section }) => section)].map(
    ([section, members]) => {
      const controls = members.map(
        (field) =>
          html`<${FieldControl}
            key=${field.attr}
            field=${field}
            input=${inputs[field.attr] ?? ''}
            error=${errors[field.attr]}
            source=${source}
            stored=${field.control === 'secret' ? storedSecret(field) : undefined}
            onInput=${(input: Input) => onInput(field, input)}
          />`,
      );
      if (!closedSections.has(section))
        return html`<fieldset class="form-section card" key=${section}>
          <legend><h2>${section}</h2></legend>
          <div class="form-fields">${controls}</div>
        </fieldset>`;
      const isWrong = members.some(({ attr }) => errors[attr] !== undefined);
      return html`<details class="form-section card" key=${section} open=${isWrong ? true : undefined}>
        <summary>
          <h2>${section}</h2>
          <span class="muted">${members.map(({ label }) => label).join(', ')}</span>
        </summary>
        <div class="form-fields">${controls}</div>
      </details>`;
    },
  )}`;
}

/** Whether there is something to choose or enter. A required field of one choice is sent without being shown. */
const isChoice = ({ required, choices }: FormField): boolean => !(required === true && choices?.length === 1);

interface FieldControlProps {
  readonly field: FormField;
  readonly input: Input;
  readonly onInput: (input: Input) => void;
  readonly error: string | undefined;
  readonly source: CompletionSource | null;
  /** What is stored of a secret. */
  readonly stored: string | undefined;
}

function FieldControl(props: FieldControlProps): View {
  const { field, input, onInput, error, stored } = props;
  if (field.control === 'filters' && typeof input === 'object')
    return html`<${FilterRows} ...${{ field, rows: input, onInput, error }} />`;
  if (field.control === 'checkbox') return html`<${Checkbox} ...${props} />`;
  const hint = stored ?? field.hint;
  const shownError = error === undefined ? undefined : inWords(summaryOfError(error));
  const required = field.required === true;
  const control = html`<${Field} ...${{ label: field.label, hint, error: shownError, required }}>
    ${(given: ControlProps) => html`<${TextControl} ...${props} control=${given} />`}
  <//>`;
  return field.isWide === true ? html`<div class="field-wide">${control}</div>` : control;
}

type TextControlProps = FieldControlProps & { readonly control: ControlProps };

const valueOf = (event: Event): string => (event.currentTarget as HTMLInputElement).value;

function TextControl({ field, input, onInput, error, source, control, stored }: TextControlProps): View {
  const value = textOf(input);
  const { attr, choices = [] } = field;
  switch (field.control) {
    case 'select':
      return html`<select
        ...${control}
        class="input"
        data-attr=${attr}
        value=${value}
        onChange=${(event: Event) => onInput(valueOf(event))}
      >
        ${field.default === undefined && html`<option value="" selected=${value === ''}>None</option>`}
        <${Options}
          labels=${Object.fromEntries(choices.map((choice) => [choice, labelOfChoice(choice)]))}
          value=${value}
        />
      </select>`;
    case 'lines':
      return html`<${LinesControl} ...${{ field, value, control, onInput, source }} />`;
    case 'dialect':
      return html`<${DialectEditor}
        control=${{ ...control, 'data-attr': attr }}
        value=${value}
        onInput=${onInput}
        error=${error === undefined ? null : errorRangeOf(error, value)}
        source=${source}
        placeholder="SELECT uuid, event, timestamp FROM events"
      />`;
    default:
      return html`<${LineControl} ...${{ field, value, control, onInput, stored }} />`;
  }
}

/** Options by value. A value that is not among them, which another client has stored, is one too. */
const Options = ({
  labels,
  value,
}: {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: string;
}): View =>
  html`${Object.entries(value === '' ? labels : { ...labels, [value]: labels[value] ?? value }).map(
    ([choice, label]) =>
      html`<option key=${choice} value=${choice} selected=${choice === value}>${label}</option>`,
  )}`;

const maxSuggested = 6;

interface ValueProps {
  readonly field: FormField;
  readonly value: string;
  readonly control: ControlProps;
  readonly onInput: (value: string) => void;
}

/** Texts, one per line, with buttons that add suggested values: those of the field, or the most frequent names of events. */
function LinesControl({
  field,
  value,
  control,
  onInput,
  source,
}: ValueProps & Pick<FieldControlProps, 'source'>): View {
  const lines = value.split('\n').filter((line) => line.trim() !== '');
  const names = typeof field.suggestions === 'object' ? field.suggestions : (source?.names?.events ?? []);
  const suggested = names.filter((name) => !lines.includes(name)).slice(0, maxSuggested);
  return html`<textarea
      ...${control}
      class="input"
      data-attr=${field.attr}
      rows="2"
      spellcheck=${false}
      placeholder="one per line"
      value=${value}
      onInput=${(event: Event) => onInput(valueOf(event))}
    />
    ${
      suggested.length > 0 &&
      html`<div class="suggested">
        ${suggested.map(
          (name) =>
            html`<${Button}
              key=${name}
              kind="quiet"
              label="Add ${name} to ${field.label.toLowerCase()}"
              onClick=${() => onInput([...lines, name].join('\n'))}
              >+ ${name}<//
            >`,
        )}
      </div>`
    }`;
}

/** Types of an input by control. */
const inputTypes: Readonly<Record<string, string>> = {
  number: 'number',
  secret: 'password',
  time: 'datetime-local',
};

function LineControl({
  field,
  value,
  control,
  onInput,
  stored,
}: ValueProps & Pick<FieldControlProps, 'stored'>): View {
  const listId = useId();
  const { suggestions = [] } = field;
  // It is in every log of AWS: a person has to see what is typed.
  const isKeyId = field.attr.endsWith('__aws_access_key_id');
  const isSecret = field.control === 'secret' && !isKeyId;
  const own = typeof suggestions === 'string' ? [] : suggestions;
  const options = suggestions === 'timezones' ? Intl.supportedValuesOf('timeZone') : own;
  return html`<input
      ...${control}
      class="input"
      data-attr=${field.attr}
      type=${isKeyId ? 'text' : (inputTypes[field.control] ?? 'text')}
      value=${value}
      min=${field.minimum}
      max=${field.maximum}
      required=${field.required === true}
      placeholder=${stored === undefined ? (own[0] ?? '') : '••••••••'}
      list=${options.length > 0 ? listId : undefined}
      spellcheck=${false}
      autocomplete=${isSecret ? 'new-password' : 'off'}
      onInput=${(event: Event) => onInput(valueOf(event))}
    />
    ${options.length > 0 && html`<datalist id=${listId}>${options.map((one) => html`<option key=${one} value=${one} />`)}</datalist>`}`;
}

function Checkbox({ field, input, onInput, error }: FieldControlProps): View {
  const id = useId();
  return html`<div class="field field-checkbox ${error ? 'field-invalid' : ''}">
    <div class="checkbox-line">
      <input
        id=${id}
        type="checkbox"
        data-attr=${field.attr}
        checked=${input === true}
        aria-describedby=${field.hint ? `${id}-hint` : undefined}
        onChange=${(event: Event) => onInput((event.currentTarget as HTMLInputElement).checked)}
      />
      <label for=${id}>${field.label}</label>
    </div>
    ${field.hint && html`<p class="field-hint" id="${id}-hint">${field.hint}</p>`}
    ${error && html`<p class="field-error">${error}</p>`}
  </div>`;
}

const newFilter: FilterRow = { type: 'event', key: '', operator: 'exact', value: '' };

/** Filters: one row of controls for each. */
function FilterRows({
  field,
  rows,
  onInput,
  error,
}: {
  readonly field: FormField;
  readonly rows: readonly FilterRow[];
  readonly onInput: (rows: Input) => void;
  readonly error: string | undefined;
}): View {
  const change = (index: number, part: Partial<FilterRow>) =>
    onInput(rows.map((row, at) => (at === index ? { ...row, ...part } : row)));
  return html`<fieldset class="object-rows ${error ? 'field-invalid' : ''}">
    <legend>${field.label}</legend>
    <p class="field-hint">${field.hint}</p>
    ${rows.map(
      (row, index) =>
        html`<div class="object-row" key=${index}>
          <${FilterControls} row=${row} onInput=${(part: Partial<FilterRow>) => change(index, part)} />
          <${Button}
            kind="quiet"
            label="Remove row ${index + 1} of ${field.label}"
            onClick=${() => onInput(rows.filter((__, at) => at !== index))}
            >Remove<//
          >
        </div>`,
    )}
    ${error && html`<p class="field-error">${error}</p>`}
    <div>
      <${Button} label="Add to ${field.label.toLowerCase()}" onClick=${() => onInput([...rows, newFilter])}
        >Add<//
      >
    </div>
  </fieldset>`;
}

/** The controls of a filter: those of its parts that its type and operator use. */
function FilterControls({
  row,
  onInput,
}: {
  readonly row: FilterRow;
  readonly onInput: (part: Partial<FilterRow>) => void;
}): View {
  const control = (name: keyof FilterRow, label: string) => ({
    class: 'input',
    'aria-label': label,
    value: row[name],
    onInput: (event: Event) => onInput({ [name]: valueOf(event) }),
  });
  const select = (name: keyof FilterRow, label: string, labels: Readonly<Record<string, string>>) =>
    html`<select ...${control(name, label)}>
      <${Options} labels=${labels} value=${row[name]} />
    </select>`;
  const text = (name: keyof FilterRow, label: string, more: object) =>
    html`<input ...${control(name, label)} ...${more} spellcheck=${false} autocomplete="off" />`;
  const type = select('type', 'Type', filterTypes);
  if (!hasOperator(row))
    return html`${type}
    ${text('key', 'Expression', { class: 'input object-row-expression', placeholder: "properties.plan = 'pro'" })}`;
  return html`${type} ${text('key', 'Key', { placeholder: 'key' })}
  ${select('operator', 'Operator', filterOperators)}
  ${hasValue(row) && text('value', 'Value', { placeholder: row.operator.endsWith('between') ? '[1, 5]' : 'value' })}`;
}
