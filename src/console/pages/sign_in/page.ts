import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { signIn, toFailure } from '../../api/client.ts';
import { Button, CopyLine } from '../../components/actions.ts';
import { TextField } from '../../components/field.ts';
import { html, type View } from '../../html.ts';

/** Asks for an API key. */
export function SignInPage(): View {
  const key = useSignal('');
  const error = useSignal<string | undefined>(undefined);
  const isBusy = useSignal(false);
  useEffect(() => {
    document.title = 'Sign in · exportd';
  }, []);
  const submit = async () => {
    isBusy.value = true;
    error.value = undefined;
    try {
      await signIn(key.value.trim());
    } catch (failure) {
      error.value = toFailure(failure).message;
    } finally {
      isBusy.value = false;
    }
  };
  return html`<main class="sign-in">
    <form
      class="sign-in-form"
      onSubmit=${(event: SubmitEvent) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h1>Sign in to exportd</h1>
      <${TextField}
        label="API key"
        type="password"
        autocomplete="current-password"
        placeholder="exk_…"
        value=${key.value}
        error=${error.value}
        required=${true}
        onInput=${(value: string) => {
          key.value = value;
        }}
      />
      <${Button} kind="primary" type="submit" busy=${isBusy.value}>Sign in<//>
      <div class="sign-in-hint">
        <p>The demo's key is <code>api_key</code> in <code>.exportd/demo.json</code>. To create one:</p>
        <${CopyLine}
          label="command that creates a key"
          text="npx exportd key create --scopes batch_export:read,batch_export:write,query:read"
        />
      </div>
    </form>
  </main>`;
}
