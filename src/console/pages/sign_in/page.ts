import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { hasSessionEnded, signIn } from '../../api/client.ts';
import { useRequest } from '../../api/resource.ts';
import { Button, CopyLine } from '../../components/actions.ts';
import { TextField } from '../../components/field.ts';
import { html, type View } from '../../html.ts';

/** Asks for an API key. */
export function SignInPage(): View {
  const key = useSignal('');
  const { failure, isBusy, run } = useRequest(() => signIn(key.value.trim()));
  useEffect(() => {
    document.title = 'Sign in · exportd';
  }, []);
  return html`<main class="sign-in">
    <form
      class="sign-in-form"
      onSubmit=${(event: SubmitEvent) => {
        event.preventDefault();
        void run();
      }}
    >
      <h1>Sign in to exportd</h1>
      ${
        hasSessionEnded.value &&
        html`<p role="alert">
          Your session has ended: its key was revoked or has expired, or you signed out elsewhere.
        </p>`
      }
      <${TextField}
        label="API key"
        type="password"
        autocomplete="current-password"
        placeholder="exk_…"
        value=${key.value}
        error=${failure?.message}
        required=${true}
        onInput=${(value: string) => (key.value = value)}
      />
      <${Button} kind="primary" type="submit" busy=${isBusy}>Sign in<//>
      <div class="sign-in-hint">
        <p>
          The demo's key is <code>api_key</code> in <code>.exportd/demo.json</code>, or of Compose in
          ${' '}<code>docker compose logs demo</code>. To create one:
        </p>
        <${CopyLine}
          label="command that creates a key"
          text="npx exportd key create --database --project 1 --preset owner"
        />
      </div>
    </form>
  </main>`;
}
