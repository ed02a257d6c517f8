import { useId } from 'preact/hooks';
import { html, type View } from '../html.ts';

/** What a control inside a field needs, so that its label, hint and error are read with it. */
export interface ControlProps {
  readonly id: string;
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': 'true' | undefined;
}

/** A labelled control with a hint and, where the API refused the value, its error. `children` makes the control. */
export function Field({
  label,
  hint,
  error,
  required = false,
  children,
}: {
  readonly label: string;
  readonly hint?: string | undefined;
  readonly error?: string | undefined;
  readonly required?: boolean;
  readonly children: (control: ControlProps) => View;
}): View {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return html`<div class="field ${error ? 'field-invalid' : ''}">
    <label for=${id}>${label}${required && html`<span class="muted"> (required)</span>`}</label>
    ${children({
      id,
      'aria-describedby': described === '' ? undefined : described,
      'aria-invalid': error ? 'true' : undefined,
    })}
    ${hint && html`<p class="field-hint" id="${id}-hint">${hint}</p>`}
    ${error && html`<p class="field-error" id="${id}-error">${error}</p>`}
  </div>`;
}

/** A line of text in a field. */
export function TextField({
  label,
  value,
  onInput,
  hint,
  error,
  required,
  type = 'text',
  placeholder,
  list,
  autocomplete = 'off',
}: {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly hint?: string | undefined;
  readonly error?: string | undefined;
  readonly required?: boolean;
  readonly type?: 'text' | 'password' | 'number' | 'email' | 'url' | 'search' | 'date' | 'datetime-local';
  readonly placeholder?: string | undefined;
  /** Id of a `datalist` that completes it. */
  readonly list?: string | undefined;
  readonly autocomplete?: string;
}): View {
  return html`<${Field} label=${label} hint=${hint} error=${error} required=${required}>
    ${(control: ControlProps) =>
      html`<input
        ...${control}
        class="input"
        type=${type}
        value=${value}
        required=${required}
        placeholder=${placeholder}
        list=${list}
        autocomplete=${autocomplete}
        spellcheck=${false}
        onInput=${(event: InputEvent) => onInput((event.currentTarget as HTMLInputElement).value)}
      />`}
  <//>`;
}

/** A choice in a field. */
export function SelectField({
  label,
  value,
  options,
  onChange,
  hint,
}: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly { readonly value: string; readonly label: string }[];
  readonly onChange: (value: string) => void;
  readonly hint?: string | undefined;
}): View {
  return html`<${Field} label=${label} hint=${hint}>
    ${(control: ControlProps) =>
      html`<select
        ...${control}
        class="input"
        value=${value}
        onChange=${(event: Event) => onChange((event.currentTarget as HTMLSelectElement).value)}
      >
        ${options.map(
          (option) =>
            html`<option key=${option.value} value=${option.value} selected=${option.value === value}>
              ${option.label}
            </option>`,
        )}
      </select>`}
  <//>`;
}
