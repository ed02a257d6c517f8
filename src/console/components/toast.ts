import { signal } from '@preact/signals';
import { html, type View } from '../html.ts';

type Tone = 'good' | 'danger';

interface ToastMessage {
  readonly id: number;
  readonly text: string;
  readonly tone: Tone;
}

const messages = signal<readonly ToastMessage[]>([]);
const shownMs = 6_000;
let newest = 0;

/** Says briefly what happened. Errors of a field or of a page stay there instead. */
export function toast(text: string, tone: Tone = 'good'): void {
  newest += 1;
  const id = newest;
  messages.value = [...messages.value, { id, text, tone }];
  window.setTimeout(() => {
    messages.value = messages.value.filter((message) => message.id !== id);
  }, shownMs);
}

/** Where toasts appear; once, in the frame. */
export function Toasts(): View {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${messages.value.map(({ id, text, tone }) => html`<p key=${id} class="toast toast-${tone}">${text}</p>`)}
  </div>`;
}
