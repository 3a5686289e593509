"""The paper's tables and ours: data sets, benchmark runs, and the report page. Nothing else imports this folder."""
