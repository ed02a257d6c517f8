import { describeNotification, type Notification } from './notification.ts';

/** A message of Slack's incoming webhooks. */
export interface SlackMessage {
  /** What a client shows that has no blocks, such as a push notification. */
  readonly text: string;
  readonly blocks: readonly SlackBlock[];
}

interface SlackText {
  readonly type: 'mrkdwn';
  readonly text: string;
}

type SlackBlock =
  | { readonly type: 'section'; readonly text: SlackText }
  | { readonly type: 'context'; readonly elements: readonly SlackText[] };

/** Slack rejects a block with more than 3,000 characters, of which an escaped one has up to five. */
const maxErrorLength = 500;

/**
 * Formats a notification for Slack.
 * @param url the page of the export; null without one
 */
export function slackMessage(notification: Notification, url: string | null): SlackMessage {
  const { type, data } = notification;
  const name = data.batch_export_name;
  const description = `${capitalize(describeNotification(notification))}.`;
  const title = escapeMarkup(name ?? 'exportd');
  const heading = url === null ? title : `<${url}|${title}>`;
  return {
    text: escapeMarkup(name === null ? description : `${name}: ${description}`),
    blocks: [
      section(`*${heading}*\n${escapeMarkup(description)}`),
      ...(data.latest_error === null ? [] : [section(code(data.latest_error))]),
      ...(data.manifest_key === null ? [] : [section(`Manifest: \`${escapeMarkup(data.manifest_key)}\``)]),
      { type: 'context', elements: [markdown(`${type} · project ${data.project_id}`)] },
    ],
  };
}

/** Formats a plain message for Slack: what happened, and details of it. */
export const plainSlackMessage = (title: string, details: string): SlackMessage => ({
  text: escapeMarkup(title),
  blocks: [section(`*${escapeMarkup(title)}*`), section(code(details))],
});

const markdown = (text: string): SlackText => ({ type: 'mrkdwn', text });
const section = (text: string): SlackBlock => ({ type: 'section', text: markdown(text) });

/** Backticks would end the code. */
function code(text: string): string {
  const shown = text.length > maxErrorLength ? `${text.slice(0, maxErrorLength).toWellFormed()}…` : text;
  return `\`\`\`${escapeMarkup(shown.replaceAll('`', "'"))}\`\`\``;
}

/** The characters that Slack interprets, such as `<!channel>`. */
const escapeMarkup = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
