// The least that a client of a language server does: the floor of what the client of Magy costs.
const { LanguageClient } = require("vscode-languageclient/node");

exports.activate = (context) => {
  const [command, ...args] = JSON.parse(process.env.BARE_SERVER);
  const client = new LanguageClient("bare", "Bare", { command, args }, {});
  context.subscriptions.push(client);
  void client.start();
};
