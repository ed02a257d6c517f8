import { useId } from 'preact/hooks';
import { Button } from '../../components/button.ts';
import { Field, type ControlProps } from '../../components/field.ts';
import type { CompletionSource } from '../../editor/completion.ts';
import { DialectEditor } from '../../editor/dialect_editor.ts';
import { errorRangeOf, summaryOfError } from '../../editor/marked_text.ts';
import { html, type View } from '../../html.ts';
import type { FormField } from './form_fields.ts';
import { textOf, type Input } from './form_values.ts';
import { ObjectRows } from './object_rows.ts';

interface FieldControlProps {
  readonly field: FormField;
  readonly input: Input;
  readonly onInput: (input: Input) => void;
  readonly error: string | undefined;
  readonly source: CompletionSource | null;
  /** Whether a secret is stored, which is kept when none is entered. */
  readonly hasStored: boolean;
}

/** A field of the form with the control that its schema asks for. */
export function FieldControl(props: FieldControlProps): View {
  const { field, input, onInput, error, hasStored } = props;
  if (field.control === 'objects' && typeof input === 'object')
    return html`<${ObjectRows} field=${field} rows=${input} onInput=${onInput} error=${error} />`;
  if (field.control === 'checkbox') return html`<${Checkbox} ...${props} />`;
  const isSecret = field.control === 'secret';
  const hint = isSecret && hasStored ? 'Stored and never shown. Empty keeps it.' : hintOf(field);
  const shownError = error === undefined ? undefined : summaryOfError(error);
  const isRequired = field.required && !(isSecret && hasStored);
  const control = html`<${Field} label=${field.label} hint=${hint} error=${shownError} required=${isRequired}>
    ${(given: ControlProps) => html`<${TextControl} ...${props} control=${given} />`}
  <//>`;
  // A query needs the width of the form.
  return field.control === 'dialect' ? html`<div class="field-wide">${control}</div>` : control;
}

const hintOf = ({ control, hint }: FormField): string | undefined =>
  control === 'time' ? `${hint ?? ''} In UTC.`.trim() : hint;

type TextControlProps = FieldControlProps & { readonly control: ControlProps };

function TextControl({ field, input, onInput, error, source, control, hasStored }: TextControlProps): View {
  const value = textOf(input);
  const read = (event: Event) => onInput((event.currentTarget as HTMLInputElement).value);
  switch (field.control) {
    case 'select':
      return html`<select ...${control} class="input" data-attr=${field.attr} value=${value} onChange=${read}>
        ${!field.required && field.default === undefined && html`<option value="" selected=${value === ''}>None</option>`}
        ${field.choices.map(
          (choice) =>
            html`<option key=${choice} value=${choice} selected=${choice === value}>${choice}</option>`,
        )}
      </select>`;
    case 'lines':
      return html`<${LinesControl}
        ...${{ field, value, control, onInput, names: source?.names?.events ?? [] }}
      />`;
    case 'json':
      return html`<${TextArea} ...${{ field, value, control, onInput }} />`;
    case 'dialect':
      return html`<${DialectEditor}
        control=${{ ...control, 'data-attr': field.attr }}
        value=${value}
        onInput=${onInput}
        error=${error === undefined ? null : errorRangeOf(error, value)}
        source=${source}
        placeholder="SELECT uuid, event, timestamp FROM events"
      />`;
    default:
      return html`<${LineControl} ...${{ field, value, control, read, source, hasStored }} />`;
  }
}

interface TextAreaProps {
  readonly field: FormField;
  readonly value: string;
  readonly control: ControlProps;
  readonly onInput: (value: string) => void;
  readonly placeholder?: string;
}

/** Text of more than one line. */
const TextArea = ({ field, value, control, onInput, placeholder }: TextAreaProps): View =>
  html`<textarea
    ...${control}
    class="input"
    data-attr=${field.attr}
    rows="2"
    spellcheck=${false}
    placeholder=${placeholder}
    value=${value}
    onInput=${(event: Event) => onInput((event.currentTarget as HTMLTextAreaElement).value)}
  />`;

const maxSuggested = 6;

/** Texts, one per line, with buttons that add the most frequent names. */
function LinesControl({
  field,
  value,
  control,
  onInput,
  names,
}: Omit<TextAreaProps, 'placeholder'> & { readonly names: readonly string[] }): View {
  const lines = value.split('\n').filter((line) => line.trim() !== '');
  const suggested =
    field.suggest === 'events' ? names.filter((name) => !lines.includes(name)).slice(0, maxSuggested) : [];
  return html`<${TextArea} ...${{ field, value, control, onInput }} placeholder="one per line" /> ${
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

function LineControl({
  field,
  value,
  control,
  read,
  hasStored,
}: {
  readonly field: FormField;
  readonly value: string;
  readonly control: ControlProps;
  readonly read: (event: Event) => void;
  readonly hasStored: boolean;
}): View {
  const listId = useId();
  const types = { number: 'number', secret: 'password', time: 'datetime-local' } as const;
  const type = field.control in types ? types[field.control as keyof typeof types] : 'text';
  const suggestions = field.suggest === 'timezones' ? Intl.supportedValuesOf('timeZone') : field.suggestions;
  const hasList = type === 'text' && suggestions.length > 0;
  return html`<input
      ...${control}
      class="input"
      data-attr=${field.attr}
      type=${type}
      value=${value}
      min=${field.minimum}
      max=${field.maximum}
      required=${field.required && !hasStored}
      placeholder=${hasStored && field.control === 'secret' ? '••••••••' : (field.suggestions[0] ?? '')}
      list=${hasList ? listId : undefined}
      spellcheck=${false}
      autocomplete=${field.control === 'secret' ? 'new-password' : 'off'}
      onInput=${read}
    />
    ${hasList && html`<datalist id=${listId}>${suggestions.map((one) => html`<option key=${one} value=${one} />`)}</datalist>`}`;
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
