import { html, type Content, type View } from '../html.ts';

export type ButtonKind = 'plain' | 'primary' | 'danger' | 'quiet';

/** A button, or with `href` a link that looks like one. `primary` at most once on a page. */
export function Button({
  kind = 'plain',
  type = 'button',
  href,
  label,
  disabled = false,
  busy = false,
  onClick,
  children,
}: {
  readonly kind?: ButtonKind;
  readonly type?: 'button' | 'submit';
  readonly href?: string;
  /** The accessible name, where the content is a sign only. */
  readonly label?: string;
  readonly disabled?: boolean;
  readonly busy?: boolean;
  readonly onClick?: (event: MouseEvent) => void;
  readonly children?: Content;
}): View {
  const name = `button button-${kind}`;
  if (href !== undefined) return html`<a class=${name} href=${href} aria-label=${label}>${children}</a>`;
  return html`<button
    class=${name}
    type=${type}
    aria-label=${label}
    aria-busy=${busy ? 'true' : undefined}
    disabled=${disabled || busy}
    onClick=${onClick}
  >
    ${children}
  </button>`;
}
