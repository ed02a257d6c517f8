import { html, type View } from '../html.ts';
import { lookOf, shapePath, type StatusLook } from './statuses.ts';

/** The sign of a status: its shape in its colour. The text beside it names it. */
export function StatusSign({ look }: { readonly look: StatusLook }): View {
  return html`<svg class="status-sign tone-${look.tone}" viewBox="0 0 12 12" aria-hidden="true">
    <path fill-rule="evenodd" d=${shapePath(look.shape)} />
  </svg>`;
}

/** A status as sign and text. `label` replaces the text, not the look. */
export function StatusBadge({ status, label }: { readonly status: string; readonly label?: string }): View {
  const look = lookOf(status);
  return html`<span class="status-badge tone-${look.tone}"
    ><${StatusSign} look=${look} />${label ?? look.label}</span
  >`;
}
